"""Random numbers of a training: first maps, the order of visits, the rivals that are drawn.

They are drawn here, never in a kernel. Each epoch has a stream of its own, derived from the seed
and the epoch's number, so a training that continues draws what it would have drawn without the
interruption.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_START, _EPOCH, _MORE = 0, 1, 2


def random_maps(seed: int, shape: tuple[int, int, int], scale: float, dtype: Any) -> np.ndarray:
    """Initial maps: zero mean, standard deviation scale/√d_x (Sec. 5)."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_START,))))
    n_maps, n_features, n_dimensions = shape
    maps = np.empty(shape, dtype)
    for k in range(n_maps):
        maps[k] = rng.standard_normal((n_features, n_dimensions)) * (scale / np.sqrt(n_features))
    return maps


def epoch_generator(seed: int, epoch: int) -> np.random.Generator:
    """The epoch's own stream of random numbers."""
    key = (_EPOCH, epoch)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def random_visits(
    seed: int, epoch: int, labels: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """One epoch's order of images, and for each a rival class other than its own.

    Returns
    -------
    order : ndarray of shape (n_samples,)
    rivals : ndarray of shape (n_samples,)
        Class number for the image at the same place of `order`.
    """
    rng = epoch_generator(seed, epoch)
    order = rng.permutation(len(labels))
    rivals = rng.integers(0, n_classes - 1, len(labels))
    rivals += rivals >= labels[order]
    return order, rivals


def more_rivals(seed: int, epoch: int, true: np.ndarray, n_classes: int, n_more: int) -> np.ndarray:
    """Further rivals for the visits of an epoch, from a stream of their own.

    Parameters
    ----------
    true : ndarray of shape (n_samples,)
        Class numbers of the images in the order of their visits.
    n_more : int

    Returns
    -------
    ndarray of shape (n_samples, n_more)
    """
    key = (_MORE, epoch)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
    rivals = rng.integers(0, n_classes - 1, (len(true), n_more))
    rivals += rivals >= true[:, None]
    return rivals
