"""The compiled part of ranking SGD (Algorithm 1 of the paper): arrays in, numbers out.

Training visits one image at a time, and every visit depends on the updates of the visits
before it. To be fast *and* exact, visits are taken in short blocks:

1. all scores a block needs are computed from the maps as they stood when the block began
   (`work_on_classes`, or matrix products for the embedding-space form);
2. `walk_block` walks through the block in order and adds to each score what the updates made
   earlier in the same block would have changed: an update of map k with image p and class q
   changes the score of image t and class c under that map by ±η (x_t·x_p)(y_c·y_q);
3. the block's updates are applied together (by `work_on_classes` for the next block, or by matrix
   products).

Steps 1 and 3 are independent for every class, so threads can share them
(`latem.models.sgd.team_kernels`).

The result is Algorithm 1 to rounding, whatever the block length. Nothing here draws random
numbers, allocates anything that grows with the data, or holds the GIL.

Key to the single letters
-------------------------
T, C, K, d   visits in the block, training classes, maps, width of the features
X (T, d)     scaled features of the block's images
c (T, 2)     class numbers of each visit: [:, 0] the true class, [:, 1] the rival
S (T, 2, K)  score of those two classes under each map
win (T, 2)   map to update for the true class (j*) and for the rival (i*); -1 = margin held
u            numbers of the visits that updated, in order
Y (C, e)     class vectors
G (C, C)     products Y Yᵀ, or an empty array where C² would be too much
V (C, K, d)  W_k y_c for every training class: what an image is multiplied with
B (C, K, d)  sum of the signed steps η x taken on class c under map k; W_k = W_k⁰ + B_kᵀ Y

Only leaf functions without branches let the compiler reorder sums, and nothing but that
(`reassoc`) and fused multiply-add (`contract`): NaN and infinity keep their meaning.
"""

import numpy as np

from latem.core.slim import needed

njit = needed("numba", "Compiled trainings").njit


def compiled(**options):
    """`njit`, keeping compiled code on disk where there is a place for it."""

    def decorate(function):
        try:
            return njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # read-only package and home: compiled again by every process
            return njit(nogil=True, **options)(function)

    return decorate


leaf = compiled(fastmath={"reassoc", "contract"})
plain = compiled()


@leaf
def dot(a, b):
    """a·b."""
    s = a.dtype.type(0)
    for j in range(a.shape[0]):
        s += a[j] * b[j]
    return s


@leaf
def dot_1x2(x, u, v):
    """x·u and x·v in one pass."""
    p = x.dtype.type(0)
    q = x.dtype.type(0)
    for j in range(x.shape[0]):
        p += x[j] * u[j]
        q += x[j] * v[j]
    return p, q


@leaf
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


@leaf
def dot_4x2(x, y, z, w, u, v):
    """x·u, x·v, y·u, y·v, z·u, z·v, w·u and w·v in one pass: fewest loads for each product."""
    zero = x.dtype.type(0)
    a, b, c, d, e, f, g, h = zero, zero, zero, zero, zero, zero, zero, zero
    for j in range(x.shape[0]):
        a += x[j] * u[j]
        b += x[j] * v[j]
        c += y[j] * u[j]
        d += y[j] * v[j]
        e += z[j] * u[j]
        f += z[j] * v[j]
        g += w[j] * u[j]
        h += w[j] * v[j]
    return a, b, c, d, e, f, g, h


@leaf
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


@leaf
def axpy(a, x, v):
    """v += a x."""
    for j in range(v.shape[0]):
        v[j] += a * x[j]


@leaf
def axpy_2(a, x0, x1, v):
    """v += a[0] x0 + a[1] x1, reading and writing v once."""
    for j in range(v.shape[0]):
        v[j] += a[0] * x0[j] + a[1] * x1[j]


@leaf
def axpy_4(a, x0, x1, x2, x3, v):
    """v += a[0] x0 + … + a[3] x3, reading and writing v once."""
    for j in range(v.shape[0]):
        v[j] += a[0] * x0[j] + a[1] * x1[j] + a[2] * x2[j] + a[3] * x3[j]


@leaf
def axpy_8(a, x0, x1, x2, x3, x4, x5, x6, x7, v):
    """v += a[0] x0 + … + a[7] x7, reading and writing v once."""
    for j in range(v.shape[0]):
        v[j] += (a[0] * x0[j] + a[1] * x1[j] + a[2] * x2[j] + a[3] * x3[j]) + (
            a[4] * x4[j] + a[5] * x5[j] + a[6] * x6[j] + a[7] * x7[j]
        )


@leaf
def widen_half(h, bits, x):
    """Finite half-precision numbers, given by their bits h, as single precision in x.

    `bits` is x seen as unsigned integers. Sign and digits only change place; the exponents of
    the two types differ by 112.
    """
    for j in range(h.shape[0]):
        digits = np.uint32(h[j])
        bits[j] = (digits & np.uint32(0x8000)) << 16 | (digits & np.uint32(0x7FFF)) << 13
    for j in range(h.shape[0]):
        x[j] *= np.float32(2.0**112)


@plain
def load_half(H, rows, bits, X):
    """Fill X[t] with row rows[t] of half-precision numbers, given by their bits H."""
    for t in range(rows.shape[0]):
        widen_half(H[rows[t]], bits[t], X[t])


@plain
def class_product(G, Y, p, q):
    """y_p · y_q, looked up if it can be."""
    if G.shape[0]:
        return G[p, q]
    return dot(Y[p], Y[q])


@plain
def work_on_classes(
    first, last, U, uc, win, u, begin, update, G, step, V, B, X, end, pair, scores, some, a
):
    """Bring classes first to last up to date, then score the pairs of the block they are in.

    U, uc, win and u are images, classes, maps and numbers of the updates that the previous block
    left, sorted by `updates_by_map`; X, `end` and `pair` the block to be scored, sorted by
    `pairs_by_class`. V and B are changed, and scores[2 t + s, k] = x_t · V[c[t, s], k] filled. V
    is larger than the near caches, so all of this is done while some of its classes are at hand: V
    travels from memory and back once per block. `some` and `a` are room for eight numbers.
    """
    for k in range(V.shape[1]):
        m = begin[k]
        while m < begin[k + 1]:
            left = begin[k + 1] - m
            width = left if left < 3 else (8 if left > 6 else 4)
            for i in range(width):  # padding: any image, with coefficient zero
                some[i] = update[m + i] if i < left else update[m]
            add_updates(U, uc, win, some[:width], min(left, width), k, G, step, a, V, first, last)
            m += width
    for m in range(u.shape[0]):
        t = u[m]
        if first <= uc[t, 0] < last:
            axpy(step, U[t], B[uc[t, 0], win[t, 0]])
        if first <= uc[t, 1] < last:
            axpy(-step, U[t], B[uc[t, 1], win[t, 1]])
    score_classes(first, last, X, end, pair, V, scores)


@plain
def updates_by_map(win, u, begin, update):
    """Sort updates by map: those that touch map k become update[begin[k]:begin[k + 1]]."""
    n = 0
    for k in range(begin.shape[0] - 1):
        begin[k] = n
        for m in range(u.shape[0]):
            t = u[m]
            if win[t, 0] == k or win[t, 1] == k:
                update[n] = t
                n += 1
    begin[-1] = n


@plain
def pairs_by_class(c, end, pair):
    """Sort places in c, flattened, by class: those of class q become pair[end[q]:end[q + 1]]."""
    flat = c.reshape(c.size)
    C = end.shape[0] - 1
    end[:] = 0
    for e in range(c.size):
        end[flat[e] + 1] += 1
    for q in range(C):
        end[q + 1] += end[q]
    for e in range(c.size):  # every end[q] moves from the beginning of class q to its end
        pair[end[flat[e]]] = e
        end[flat[e]] += 1
    for q in range(C, 0, -1):
        end[q] = end[q - 1]
    end[0] = 0


@plain
def add_updates(U, uc, uwin, s, n, k, G, step, a, V, first, last):
    """Add up to eight updates of map k, those numbered s[:n], to classes first to last of V.

    An update adds ±η (y_c · y_q) x to row q. Taking several at a time reads and writes a row
    once for all of them; rows orthogonal to all of them (one-hot classes) are not touched.
    """
    width = s.shape[0]
    for q in range(first, last):
        touched = False
        for u in range(width):
            g = V.dtype.type(0)
            if u < n:
                if uwin[s[u], 0] == k:
                    g += G[q, uc[s[u], 0]]
                if uwin[s[u], 1] == k:
                    g -= G[q, uc[s[u], 1]]
            a[u] = step * g
            touched = touched or g != 0
        if not touched:
            continue
        v = V[q, k]
        if width == 8:
            axpy_8(a, U[s[0]], U[s[1]], U[s[2]], U[s[3]], U[s[4]], U[s[5]], U[s[6]], U[s[7]], v)
        elif width == 4:
            axpy_4(a, U[s[0]], U[s[1]], U[s[2]], U[s[3]], v)
        elif width == 2:
            axpy_2(a, U[s[0]], U[s[1]], v)
        else:
            axpy(a[0], U[s[0]], v)


@plain
def score_classes(first, last, X, end, pair, V, scores):
    """Score the pairs of classes first to last, see `pairs_by_class`."""
    for q in range(first, last):
        score_class(X, pair[end[q] : end[q + 1]], V[q], scores)


@plain
def score_class(X, pair, V, S):
    """Fill the scores of one class, S[e] = V x_{e // 2} for every e in `pair`.

    All maps of a visit are scored by the same leaf function, so that equal maps have equal scores
    and the first of them wins: of an odd number the last two are scored together as well.
    """
    K = V.shape[0]
    n = pair.shape[0]
    m = 0
    if K == 1:
        for m in range(0, n - 1, 2):
            S[pair[m], 0], S[pair[m + 1], 0] = dot_1x2(V[0], X[pair[m] // 2], X[pair[m + 1] // 2])
        if n % 2:
            S[pair[n - 1], 0] = dot(X[pair[n - 1] // 2], V[0])
        return
    while m + 4 <= n:
        a, b, c, d = pair[m], pair[m + 1], pair[m + 2], pair[m + 3]
        for i in range(0, K, 2):
            k = min(i, K - 2)
            (
                S[a, k], S[a, k + 1], S[b, k], S[b, k + 1],
                S[c, k], S[c, k + 1], S[d, k], S[d, k + 1],
            ) = dot_4x2(X[a // 2], X[b // 2], X[c // 2], X[d // 2], V[k], V[k + 1])  # fmt: skip
        m += 4
    if m + 2 <= n:
        a, b = pair[m], pair[m + 1]
        for i in range(0, K, 2):
            k = min(i, K - 2)
            S[a, k], S[a, k + 1], S[b, k], S[b, k + 1] = dot_2x2(
                X[a // 2], X[b // 2], V[k], V[k + 1]
            )
        m += 2
    if m < n:
        a = pair[m]
        for i in range(0, K, 2):
            k = min(i, K - 2)
            S[a, k], S[a, k + 1] = dot_1x2(X[a // 2], V[k], V[k + 1])


@plain
def pair_scores(P, Y, c, k, S):
    """Fill S[t, s, k] = P[t] · Y[c[t, s]] from the block's images projected by map k."""
    for t in range(c.shape[0]):
        S[t, 0, k], S[t, 1, k] = dot_1x2(P[t], Y[c[t, 0]], Y[c[t, 1]])


@plain
def later_products(X, first, four, product):
    """Fill product[t, m] = x_t · x_four[m] for all visits from `first` on."""
    a, b, c, d = X[four[0]], X[four[1]], X[four[2]], X[four[3]]
    t = first
    while t + 2 <= X.shape[0]:
        (
            product[t, 0], product[t + 1, 0], product[t, 1], product[t + 1, 1],
            product[t, 2], product[t + 1, 2], product[t, 3], product[t + 1, 3],
        ) = dot_4x2(a, b, c, d, X[t], X[t + 1])  # fmt: skip
        t += 2
    if t < X.shape[0]:
        product[t, 0], product[t, 1], product[t, 2], product[t, 3] = dot_1x4(X[t], a, b, c, d)


@plain
def walk_block(X, c, Y, G, S, step, margin, product, win, updated, visits, violations):
    """Walk through the block in order: correct the scores, decide each visit.

    S holds the scores as of the block's beginning and is corrected in place. `product` is room
    for x_t · x_p by visit and number of the update, at least (T, T). `visits[k]` and
    `violations[k]` count how often map k scored the true class best, over all visits and over
    those that violated the margin; `updated` gets the latter's numbers in order. Returns the number
    of violations and the sum of the hinge losses max(0, margin + F(x, rival) - F(x, true)), which
    is NaN if any score was.
    """
    T = c.shape[0]
    K = S.shape[2]
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
