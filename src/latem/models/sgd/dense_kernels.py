"""The compiled part of the models that look at all classes on every visit (SJE, ALE, DeViSE).

As in `latem.models.sgd.kernels`, visits are taken in blocks, exactly: all scores of a block come
from the maps as they stood when it began, and `walk_dense_block` walks through the block in order
and adds what the block's own updates would have changed.

An update consists of *moves*, one for each map it touches. Move m with image p adds η x_p e_mᵀ to
its map, where e_m = Σ_c A[m, c] y_c. So it changes the scores of image t under that map by
(x_t·x_p) D[m], where D[m, c] = η y_c·e_m.

Key to the single letters
-------------------------
T, C, K, d, e  visits in the block, training classes, maps, widths of features and class vectors
X (T, d)       scaled features of the block's images
Y (C, e)       class vectors
G (C, C)       products Y Yᵀ, or an empty array where C² would be too much
S (K, T, C)    scores of all classes under each map
P (K, T, e)    images projected by each map, W_kᵀ x; without visits (K, 0, e) if not needed
R (T, C)       random numbers: the order in which a visit looks at its rivals; (T, 0) if unneeded;
               for DRAWN instead (T, m), the numbers of the classes that were drawn
M (·, 2)       moves: number of the update, number of the map
A, D (·, C)    moves: coefficients of the classes, and what they do to the scores
E (·, e)       moves: η e_m; only where P is needed or G is empty
"""

import numpy as np

from latem.models.sgd.kernels import axpy, dot, later_products, leaf, plain

WORST, FIRST, ALL, DRAWN, HARDEST = 0, 1, 2, 3, 4  # which violators an update is made for


@plain
def walk_dense_block(
    X, true, Y, G, S, P, R, rule, weight, step, margin, product, known, M, A, D, E, counts
):
    """Walk through the block in order: correct the scores, decide each visit, note the moves.

    `true` holds the class numbers of the visits, `weight[N]` the weight of an update whose
    violator was found at the N-th draw. `product` (at least (T, T)) holds X Xᵀ if `known`, or is
    room for the products with updated images, which are then computed as they are needed.
    `counts[0, k]` and `counts[1, k]` count how often map k scored the true class best, over all
    visits and over those with an update. `updated[u]` is the visit of update u. Returns it with
    the number of moves and the summed loss, which is NaN if the true class's score ever was.
    """
    K, T, C = S.shape
    normalised = P.shape[1] > 0
    updated = np.empty(T, np.int64)
    F = np.empty(C, S.dtype)
    winner = np.empty(C, np.int64)  # the map that scores each class best
    a = np.zeros((K, C), S.dtype)
    ready = 0  # updates whose products with all later visits are known: multiples of four
    n_updates = 0
    n_moves = 0
    loss = 0.0
    for t in range(T):
        y = true[t]
        for m in range(n_moves):
            u = M[m, 0]
            if known:
                g = product[t, updated[u]]
            elif u < ready:
                g = product[t, u]
            else:
                g = dot(X[t], X[updated[u]])
            axpy(g, D[m], S[M[m, 1], t])
            if normalised:
                axpy(g, E[m], P[M[m, 1], t])
        best_maps(S, P, t, F, winner)
        counts[0, winner[y]] += 1
        if not np.isfinite(F[y]):
            loss = np.nan
        if rule == WORST:
            total = choose_worst(F, winner, y, margin, a)
        elif rule == FIRST:
            total = choose_first(F, winner, y, margin, R[t], weight, a)
        elif rule == DRAWN:
            total = choose_drawn(F, winner, y, margin, R[t], a)
        elif rule == HARDEST:
            total = choose_hardest(F, winner, y, margin, a)
        else:
            total = choose_all(F, winner, y, margin, a)
        if total < 0:
            continue
        loss += total
        counts[1, winner[y]] += 1
        updated[n_updates] = t
        for k in range(K):
            if note_move(a[k], Y, G, step, A[n_moves], D[n_moves], E):
                if E.shape[0]:
                    E[n_moves] = E[-1]
                M[n_moves, 0] = n_updates
                M[n_moves, 1] = k
                n_moves += 1
        n_updates += 1
        if n_updates == ready + 4 and not known:
            later_products(X, t + 1, updated[ready:n_updates], product[:, ready:n_updates])
            ready = n_updates
    return updated, n_moves, loss


@plain
def best_maps(S, P, t, F, winner):
    """F[c] = max_k S[k, t, c] and the map it comes from, the first of equals."""
    K, C = S.shape[0], S.shape[2]
    for k in range(K):
        scale = S.dtype.type(1)
        if P.shape[1]:
            square = dot(P[k, t], P[k, t])
            if square > 0:
                scale = S.dtype.type(1) / np.sqrt(square)
        for c in range(C):
            score = scale * S[k, t, c]
            if k == 0 or score > F[c]:
                F[c] = score
                winner[c] = k


@plain
def choose_worst(F, winner, y, margin, a):
    """The class that is best when the true one is handicapped by the margin; -1 if it is true."""
    best = 0
    handicapped = F[y]
    F[y] -= margin
    for c in range(F.shape[0]):
        if F[c] > F[best]:
            best = c
    F[y] = handicapped
    if best == y:
        return -1.0
    a[winner[y], y] += 1
    a[winner[best], best] -= 1
    return max(margin + F[best] - F[y], 0.0)


@plain
def choose_first(F, winner, y, margin, r, weight, a):
    """The first violator in the order of r; the weight depends on how many were looked at.

    The loops carry no branches and no place, so that they vectorise; the place is looked up at
    the end. Random numbers lie below one.
    """
    true_number = r[y]
    r[y] = 2
    least = smallest_above(F, F[y] - margin, r)
    if least >= 1:
        r[y] = true_number
        return -1.0
    n = 1 + count_below(r, least)
    first = 0
    while r[first] != least or not F[first] > F[y] - margin:
        first += 1
    r[y] = true_number
    a[winner[y], y] += weight[n]
    a[winner[first], first] -= weight[n]
    return max(weight[n] * (margin + F[first] - F[y]), 0.0)  # rounding must not hide a violator


@leaf
def smallest_above(F, level, r):
    """Smallest r[c] of those with F[c] > level, or 2."""
    least = r.dtype.type(2)
    for c in range(F.shape[0]):
        key = r[c] if F[c] > level else r.dtype.type(2)
        least = key if key < least else least
    return least


@leaf
def count_below(r, level):
    """How many numbers lie below a level."""
    n = 0
    for c in range(r.shape[0]):
        n += 1 if r[c] < level else 0
    return n


@plain
def choose_drawn(F, winner, y, margin, drawn, a):
    """The best of the classes that were drawn, the first of equals, if it violates the margin."""
    best = int(drawn[0])
    for i in range(1, drawn.shape[0]):
        c = int(drawn[i])
        if F[c] > F[best]:
            best = c
    if not F[best] + margin > F[y]:
        return -1.0
    a[winner[y], y] += 1
    a[winner[best], best] -= 1
    return margin + F[best] - F[y]


@plain
def choose_hardest(F, winner, y, margin, a):
    """The best of all other classes, the first of equals, if it violates the margin."""
    best = 0 if y else 1
    for c in range(best + 1, F.shape[0]):
        if c != y and F[c] > F[best]:
            best = c
    if not F[best] + margin > F[y]:
        return -1.0
    a[winner[y], y] += 1
    a[winner[best], best] -= 1
    return margin + F[best] - F[y]


@plain
def choose_all(F, winner, y, margin, a):
    """Every violator."""
    total = -1.0
    for c in range(F.shape[0]):
        if c != y and F[c] + margin > F[y]:
            a[winner[y], y] += 1
            a[winner[c], c] -= 1
            total = max(total, 0.0) + max(margin + F[c] - F[y], 0.0)
    return total


@plain
def note_move(a, Y, G, step, A, D, E):
    """Write down the move of one map, if there is one, and clear `a`.

    The move's η e_m is left in the last row of E, if E has rows.
    """
    C = a.shape[0]
    some = False
    for c in range(C):
        some = some or a[c] != 0
    if not some:
        return False
    exact = G.shape[0] > 0
    D[:] = 0
    if E.shape[0]:
        E[-1] = 0
    for c in range(C):
        A[c] = a[c]
        if a[c] != 0:
            if exact:
                axpy(step * a[c], G[c], D)
            if E.shape[0]:
                axpy(step * a[c], Y[c], E[-1])
        a[c] = 0
    if not exact:
        for c in range(C):
            D[c] = dot(Y[c], E[-1])
    return True


@plain
def add_moves(X, image, M, A, step, B, when, late):
    """Record moves in B (K, C, d), the signed steps taken on each class under each map.

    If `late` has B's shape, every step is added there too, times when[t] for visit t.
    """
    for m in range(M.shape[0]):
        for c in range(A.shape[1]):
            if A[m, c] != 0:
                axpy(step * A[m, c], X[image[m]], B[M[m, 1], c])
                if late.shape[0]:
                    a = step * A[m, c] * when[image[m]]
                    axpy(a, X[image[m]], late[M[m, 1], c])


@plain
def warp_visits(X, labels, Y, R, weight, step, margin, U, V, Z):
    """Visit images in order, changing U (rank, d), V (rank, e) and Z = Y Vᵀ (C, rank) in place.

    R (T, C) are random numbers, the order in which each visit looks at its rivals; `weight[N]`
    is the weight of a step after N draws. Returns the number of violations and the summed loss.
    """
    C = Y.shape[0]
    rank = U.shape[0]
    F = np.empty(C, Y.dtype)
    winner = np.zeros(C, np.int64)
    a = np.zeros((1, C), Y.dtype)
    p = np.empty(rank, Y.dtype)
    z = np.empty(rank, Y.dtype)
    n = 0
    loss = 0.0
    for t in range(X.shape[0]):
        y = labels[t]
        for i in range(rank):
            p[i] = dot(U[i], X[t])
        for c in range(C):
            F[c] = dot(Z[c], p)
        if not np.isfinite(F[y]):
            loss = np.nan
        hinge = choose_first(F, winner, y, margin, R[t], weight, a)
        if hinge < 0:
            continue
        loss += hinge
        n += 1
        z[:] = 0
        move = np.zeros(Y.shape[1], Y.dtype)
        for c in range(C):
            if a[0, c] != 0:
                axpy(a[0, c], Z[c], z)
                axpy(a[0, c], Y[c], move)
                a[0, c] = 0
        for i in range(rank):
            axpy(step * z[i], X[t], U[i])
            axpy(step * p[i], move, V[i])
        for c in range(C):
            axpy(step * dot(Y[c], move), p, Z[c])
    return n, loss
