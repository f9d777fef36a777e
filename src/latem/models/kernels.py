"""The compiled part of ranking SGD (Algorithm 1 of the paper): arrays in, numbers out.

Training visits one image at a time, and every visit depends on the updates of the visits
before it. To be fast *and* exact, visits are taken in short blocks:

1. all scores a block needs are computed from the maps as they stood when the block began
   (`class_scores`, or matrix products for the embedding-space form);
2. `settle` walks through the block in order and adds to each score what the updates made
   earlier in the same block would have changed: an update of map k with image p and class q
   changes the score of image t and class c under that map by ±η (x_t·x_p)(y_c·y_q);
3. the block's updates are applied together (`apply_class_steps`, or a matrix product).

The result is Algorithm 1 to rounding, whatever the block length. Nothing here draws random
numbers, allocates anything that grows with the data, or holds the GIL.

Key to the single letters
-------------------------
T, C, K, d   visits in the block, training classes, maps, width of the features
X (T, d)     scaled features of the block's images
c (T, 2)     class numbers of each visit: [:, 0] the true class, [:, 1] the rival
S (T, 2, K)  score of those two classes under each map
win (T, 2)   map to update for the true class (j*) and for the rival (i*); -1 = margin held
Y (C, e)     class vectors
G (C, C)     products Y Yᵀ, or an empty array where C² would be too much
V (C, K, d)  W_k y_c for every training class: what an image is multiplied with
B (C, K, d)  sum of the signed steps η x taken on class c under map k; W_k = W_k⁰ + B_kᵀ Y

Only leaf functions without branches let the compiler reorder sums, and nothing but that
(`reassoc`) and fused multiply-add (`contract`): NaN and infinity keep their meaning.
"""

import numpy as np
from numba import njit

_leaf = njit(fastmath={"reassoc", "contract"}, nogil=True, cache=True)
_plain = njit(nogil=True, cache=True)


@_leaf
def dot(a, b):
    """a·b."""
    s = a.dtype.type(0)
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@_leaf
def dot_1x2(x, u, v):
    """x·u and x·v in one pass."""
    p = x.dtype.type(0)
    q = x.dtype.type(0)
    for j in range(x.shape[0]):
        p += x[j] * u[j]
        q += x[j] * v[j]
    return p, q


@_leaf
def dot_2x2(x, z, u, v):
    """x·u, x·v, z·u and z·v in one pass."""
    zero = x.dtype.type(0)
    p, q, r, s = zero, zero, zero, zero
    for j in range(x.shape[0]):
        p += x[j] * u[j]
        q += x[j] * v[j]
        r += z[j] * u[j]
        s += z[j] * v[j]
    return p, q, r, s


@_leaf
def dot_1x4(x, u0, u1, u2, u3):
    """x·u0, …, x·u3 in one pass."""
    zero = x.dtype.type(0)
    p, q, r, s = zero, zero, zero, zero
    for j in range(x.shape[0]):
        p += x[j] * u0[j]
        q += x[j] * u1[j]
        r += x[j] * u2[j]
        s += x[j] * u3[j]
    return p, q, r, s


@_leaf
def axpy(a, x, v):
    """v += a x."""
    for j in range(v.shape[0]):
        v[j] += a * x[j]


@_leaf
def axpy_4(a, x0, x1, x2, x3, v):
    """v += a[0] x0 + … + a[3] x3, reading and writing v once."""
    for j in range(v.shape[0]):
        v[j] += a[0] * x0[j] + a[1] * x1[j] + a[2] * x2[j] + a[3] * x3[j]


@_leaf
def axpy_8(a, x0, x1, x2, x3, x4, x5, x6, x7, v):
    """v += a[0] x0 + … + a[7] x7, reading and writing v once."""
    for j in range(v.shape[0]):
        v[j] += (a[0] * x0[j] + a[1] * x1[j] + a[2] * x2[j] + a[3] * x3[j]) + (
            a[4] * x4[j] + a[5] * x5[j] + a[6] * x6[j] + a[7] * x7[j]
        )


@_leaf
def scale_rows(X, shift, scale):
    """X = (X - shift) * scale, in place."""
    for t in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[t, j] = (X[t, j] - shift[j]) * scale[j]


@_plain
def class_product(G, Y, p, q):
    """y_p · y_q, looked up if it can be."""
    if G.shape[0]:
        return G[p, q]
    return dot(Y[p], Y[q])


@_plain
def class_scores(X, c, V, S):
    """Fill S[t, s, k] = x_t · V[c[t, s], k].

    The block's (visit, side) pairs are sorted by class, so that the K rows of a class travel
    from memory once per block however many visits ask for them.
    """
    T = c.shape[0]
    C, K, _ = V.shape
    flat = c.reshape(2 * T)
    scores = S.reshape((2 * T, K))

    end = np.zeros(C + 1, np.int64)
    pairs = np.empty(2 * T, np.int64)
    for e in range(2 * T):
        end[flat[e] + 1] += 1
    for q in range(C):
        end[q + 1] += end[q]
    for e in range(2 * T):
        pairs[end[flat[e]]] = e
        end[flat[e]] += 1

    e = 0
    for q in range(C):
        while e < end[q]:
            a = pairs[e]
            k = 0
            if e + 1 < end[q]:
                b = pairs[e + 1]
                while k + 1 < K:
                    scores[a, k], scores[a, k + 1], scores[b, k], scores[b, k + 1] = dot_2x2(
                        X[a // 2], X[b // 2], V[q, k], V[q, k + 1]
                    )
                    k += 2
                if k < K:
                    scores[a, k], scores[b, k] = dot_1x2(V[q, k], X[a // 2], X[b // 2])
                e += 2
            else:
                while k + 1 < K:
                    scores[a, k], scores[a, k + 1] = dot_1x2(X[a // 2], V[q, k], V[q, k + 1])
                    k += 2
                if k < K:
                    scores[a, k] = dot(X[a // 2], V[q, k])
                e += 1


@_plain
def pair_scores(P, Y, c, k, S):
    """Fill S[t, s, k] = P[t] · Y[c[t, s]] from the block's images projected by map k."""
    for t in range(c.shape[0]):
        S[t, 0, k], S[t, 1, k] = dot_1x2(P[t], Y[c[t, 0]], Y[c[t, 1]])


@_plain
def later_products(X, first, four, product):
    """Fill product[t, m] = x_t · x_four[m] for all visits from `first` on."""
    a, b, c, d = X[four[0]], X[four[1]], X[four[2]], X[four[3]]
    for t in range(first, X.shape[0]):
        product[t, 0], product[t, 1], product[t, 2], product[t, 3] = dot_1x4(X[t], a, b, c, d)


@_plain
def settle(X, c, Y, G, S, step, margin, win, visits, violations):
    """Walk through the block in order: correct the scores, decide each visit.

    S holds the scores as of the block's beginning and is corrected in place. `visits[k]` and
    `violations[k]` count how often map k scored the true class best, over all visits and over
    those that violated the margin. Returns the number of violations and the sum of the hinge
    losses max(0, margin + F(x, rival) - F(x, true)), which is NaN if any score was.
    """
    T = c.shape[0]
    K = S.shape[2]
    updated = np.empty(T, np.int64)
    product = np.empty((T, T), X.dtype)  # x_t · x_p, by visit and number of the update
    ready = 0  # updates whose products with all later visits are known: multiples of four
    n = 0
    loss = 0.0
    for t in range(T):
        true, rival = c[t, 0], c[t, 1]
        for m in range(n):
            p = updated[m]
            g = step * (product[t, m] if m < ready else dot(X[t], X[p]))
            j, i = win[p, 0], win[p, 1]
            S[t, 0, j] += g * class_product(G, Y, true, c[p, 0])
            S[t, 0, i] -= g * class_product(G, Y, true, c[p, 1])
            S[t, 1, j] += g * class_product(G, Y, rival, c[p, 0])
            S[t, 1, i] -= g * class_product(G, Y, rival, c[p, 1])
        i = 0
        j = 0
        for k in range(1, K):  # the first of equals wins
            if S[t, 0, k] > S[t, 0, j]:
                j = k
            if S[t, 1, k] > S[t, 1, i]:
                i = k
        visits[j] += 1
        if S[t, 1, i] + margin > S[t, 0, j]:
            loss += margin + S[t, 1, i] - S[t, 0, j]
            violations[j] += 1
            win[t, 0] = j
            win[t, 1] = i
            updated[n] = t
            n += 1
            if n == ready + 4:
                later_products(X, t + 1, updated[ready:n], product[:, ready:n])
                ready = n
        else:
            win[t, 0] = -1
            win[t, 1] = -1
            if not S[t, 1, i] + margin <= S[t, 0, j]:
                loss = np.nan
    return n, loss


@_plain
def apply_class_steps(X, c, win, G, step, V, B):
    """Apply a settled block to V and B.

    Each update adds ±η G[c, q] x to row q of its map. Updates of one map are added eight at a
    time, so that a row of V is read and written once for all eight; rows whose class is
    orthogonal to all of them (one-hot classes) are not touched.
    """
    T = c.shape[0]
    C, K, _ = V.shape
    slot = np.empty(T + 8, np.int64)
    a = np.empty(8, V.dtype)
    for k in range(K):
        n = 0
        for t in range(T):
            if win[t, 0] == k:
                axpy(step, X[t], B[c[t, 0], k])
            if win[t, 1] == k:
                axpy(-step, X[t], B[c[t, 1], k])
            if win[t, 0] == k or win[t, 1] == k:
                slot[n] = t
                n += 1
        for first in range(0, n, 8):
            width = min(8, n - first)
            s = slot[first : first + 8]
            s[width:] = s[0]  # padding: any image, with coefficient zero
            for q in range(C):
                touched = False
                for u in range(8):
                    g = V.dtype.type(0)
                    if u < width:
                        if win[s[u], 0] == k:
                            g += G[c[s[u], 0], q]
                        if win[s[u], 1] == k:
                            g -= G[c[s[u], 1], q]
                    a[u] = step * g
                    if g != 0:
                        touched = True
                if not touched:
                    continue
                if width > 4:
                    axpy_8(
                        a, X[s[0]], X[s[1]], X[s[2]], X[s[3]],
                        X[s[4]], X[s[5]], X[s[6]], X[s[7]], V[q, k],
                    )  # fmt: skip
                elif width > 1:
                    axpy_4(a, X[s[0]], X[s[1]], X[s[2]], X[s[3]], V[q, k])
                else:
                    axpy(a[0], X[s[0]], V[q, k])
