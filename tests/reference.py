"""Algorithm 1 of the paper in plain NumPy: slow, obvious, and vectorised over maps only.

It is the measure of correctness (`tests/test_parity.py`) and of speed (`benchmarks/train.py`).
"""

import numpy as np


def sgd_epoch(X, y, Y, W, order, rivals, step, margin, visits=None, violations=None):
    """One epoch, changing W (K, d_x, d_y) in place; returns violations and summed loss."""
    n_violations, loss = 0, 0.0
    for n, rival in zip(order, rivals, strict=True):
        x = X[n]
        projected = x @ W  # (K, d_y)
        of_rival = projected @ Y[rival]
        of_true = projected @ Y[y[n]]
        i, j = of_rival.argmax(), of_true.argmax()
        if visits is not None:
            visits[j] += 1
        if of_rival[i] + margin > of_true[j]:
            loss += margin + of_rival[i] - of_true[j]
            n_violations += 1
            if violations is not None:
                violations[j] += 1
            W[i] -= np.outer(step * x, Y[rival])
            W[j] += np.outer(step * x, Y[y[n]])
    return n_violations, loss


def scores(X, W, Y):
    """F(x, y) = max_k xᵀ W_k y for all images and classes."""
    return np.stack([X @ w @ Y.T for w in W]).max(axis=0)


def train(X, y, Y, W, visits, step, margin, prune_below=None, prune_every=5):
    """Epochs over the given (order, rivals) pairs, pruning by share of violations so far."""
    W = W.copy()
    counts = np.zeros(len(W), int)
    kept = []
    for epoch, (order, rivals) in enumerate(visits, start=1):
        sgd_epoch(X, y, Y, W, order, rivals, step, margin, violations=counts)
        if prune_below is not None and epoch % prune_every == 0 and counts.sum():
            keep = counts >= prune_below * counts.sum()
            keep[counts.argmax()] = True
            W, counts = W[keep], counts[keep]
        kept.append(len(W))
    return W, kept


def dense_epoch(X, y, Y, W, order, keys, rule, step, margin, weight=None, normalize=False):
    """One epoch of SJE ("worst"), ALE or DeViSE ("first", "all"), changing W (K, d_x, d_y).

    `keys` (n, C) give each visit the order in which it looks at its rivals, `weight(N)` the weight
    of a step whose violator was found at the N-th draw. Returns violations and summed loss.
    """
    n_violations, loss = 0, 0.0
    for n, key in zip(order, keys, strict=True):
        x, true = X[n], y[n]
        projected = x @ W  # (K, d_y)
        if normalize:
            projected = projected / np.linalg.norm(projected, axis=1, keepdims=True)
        by_map = projected @ Y.T  # (K, C)
        best_map, F = by_map.argmax(axis=0), by_map.max(axis=0)
        violators, scale = [], 1.0
        if rule == "worst":
            handicapped = F.copy()
            handicapped[true] -= margin
            if handicapped.argmax() != true:
                violators = [handicapped.argmax()]
        else:
            for draws, c in enumerate((c for c in np.argsort(key) if c != true), start=1):
                if F[c] + margin > F[true]:
                    violators.append(c)
                    if rule == "first":
                        scale = weight(draws)
                        break
        n_violations += len(violators) > 0
        for c in violators:
            loss += scale * (margin + F[c] - F[true])
            W[best_map[true]] += np.outer(scale * step * x, Y[true])
            W[best_map[c]] -= np.outer(scale * step * x, Y[c])
    return n_violations, loss
