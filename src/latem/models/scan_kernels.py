"""The compiled part of looking through stored images: products with a few vectors at memory speed.

Rows are taken as they are stored, some at a time: widened to single precision, shifted, and
multiplied with the vectors while they are in the near cache. Every row is worked on in the same
way whatever comes before or after it, so equal rows have equal products.

Key to the single letters
-------------------------
H (n, d)     stored half-precision numbers, given by their bits
X (n, d)     stored single-precision numbers
Z (t, d)     room for some rows in single precision
V (p, d)     vectors to multiply with
S (p, m)     products of the vectors with the m rows that are asked for
"""

import numpy as np

from latem.models.sgd.kernels import axpy, dot, leaf, plain, widen_half


@leaf
def dot_2x4(x, z, u0, u1, u2, u3):
    """x·u0, …, x·u3, z·u0, …, z·u3 in one pass."""
    zero = x.dtype.type(0)
    a, b, c, d = zero, zero, zero, zero
    e, f, g, h = zero, zero, zero, zero
    for j in range(x.shape[0]):
        a += x[j] * u0[j]
        b += x[j] * u1[j]
        c += x[j] * u2[j]
        d += x[j] * u3[j]
        e += z[j] * u0[j]
        f += z[j] * u1[j]
        g += z[j] * u2[j]
        h += z[j] * u3[j]
    return a, b, c, d, e, f, g, h


@leaf
def largest_digits(h):
    """The largest of some half-precision numbers without their signs, as bits."""
    largest = np.uint32(0)
    for j in range(h.shape[0]):
        largest = max(largest, np.uint32(h[j]) & np.uint32(0x7FFF))
    return largest


@plain
def products(Z, n, shift, V, first, S, squares):
    """Fill S[:, first + t] with V times Z[t] - shift, and squares with the lengths² of the Z[t].

    An empty `shift` is none, and empty `squares` are not filled.
    """
    p_full = V.shape[0] // 4 * 4
    for t in range(n):
        if squares.shape[0]:
            squares[first + t] = dot(Z[t], Z[t])
        if shift.shape[0]:
            axpy(np.float32(-1), shift, Z[t])
    for p in range(0, p_full, 4):
        for t in range(0, n, 2):
            s = min(t + 1, n - 1)  # an odd row is its own neighbour
            a, b, c, d, e, f, g, h = dot_2x4(Z[t], Z[s], V[p], V[p + 1], V[p + 2], V[p + 3])
            S[p, first + t], S[p + 1, first + t] = a, b
            S[p + 2, first + t], S[p + 3, first + t] = c, d
            S[p, first + s], S[p + 1, first + s] = e, f
            S[p + 2, first + s], S[p + 3, first + s] = g, h
    for p in range(p_full, V.shape[0]):
        for t in range(n):
            S[p, first + t] = dot(Z[t], V[p])


@plain
def scan_half(H, rows, bits, Z, shift, V, S, squares):
    """Products of stored half-precision rows with V; of a row with infinity or NaN they are NaN."""
    for first in range(0, rows.shape[0], Z.shape[0]):
        n = min(Z.shape[0], rows.shape[0] - first)
        for t in range(n):
            widen_half(H[rows[first + t]], bits[t], Z[t])
        products(Z, n, shift, V, first, S, squares)
        for t in range(n):
            if largest_digits(H[rows[first + t]]) >= np.uint32(0x7C00):
                S[:, first + t] = np.nan


@plain
def scan_single(X, rows, Z, shift, V, S, squares):
    """Products of stored single-precision rows with V."""
    for first in range(0, rows.shape[0], Z.shape[0]):
        n = min(Z.shape[0], rows.shape[0] - first)
        for t in range(n):
            Z[t] = X[rows[first + t]]
        products(Z, n, shift, V, first, S, squares)
