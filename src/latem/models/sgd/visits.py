"""Random numbers of a training: first maps, the order of visits, the rivals that are drawn.

They are drawn here, never in a kernel. Each epoch has a stream of its own, derived from the seed
and the epoch's number, so a training that continues draws what it would have drawn without the
interruption.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_START, _EPOCH, _MORE = 0, 1, 2
BLOCK_ROWS = 256  # most consecutive images that are read in one piece, see `visiting_order`
BLOCKS = 64  # pieces that a buffer is filled from, at least


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


def visiting_order(
    rng: np.random.Generator, n_samples: int, buffer: int | None = None
) -> np.ndarray:
    """A random order of some images, over all of them or through a buffer of bounded size.

    Without a buffer, or with one that holds all images, every order is equally likely. A smaller
    buffer is for files larger than memory, where an image at a random place costs a reading of
    the disk: the file is cut into blocks of ``buffer // BLOCKS`` consecutive images, 1 to
    `BLOCK_ROWS` of them; blocks come in random order; what fits into the buffer is shuffled and
    visited, then the buffer is filled with what follows. So buffer number i holds places
    ``i * buffer`` to ``(i + 1) * buffer`` of the order.

    Parameters
    ----------
    rng : Generator
    n_samples : int
    buffer : int or None
        Images that are shuffled together.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> order = visiting_order(np.random.default_rng(0), 1000, 128)  # blocks of 2 images
    >>> first = np.sort(order[:128])
    >>> bool((first[1::2] == first[::2] + 1).all() and (first[::2] % 2 == 0).all())
    True
    """
    if buffer is None or buffer >= n_samples:
        return rng.permutation(n_samples)
    size = min(max(buffer // BLOCKS, 1), BLOCK_ROWS)
    first = size * rng.permutation(-(-n_samples // size))
    order = (first[:, None] + np.arange(size)).ravel()
    order = order[order < n_samples]  # the last block of the file may be shorter
    for start in range(0, n_samples, buffer):
        rng.shuffle(order[start : start + buffer])
    return order


def random_visits(
    seed: int, epoch: int, labels: np.ndarray, n_classes: int, buffer: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """One epoch's order of images, and for each a rival class other than its own.

    The order is that of `visiting_order`, with the given buffer.

    Returns
    -------
    order : ndarray of shape (n_samples,)
    rivals : ndarray of shape (n_samples,)
        Class number for the image at the same place of `order`.
    """
    rng = epoch_generator(seed, epoch)
    order = visiting_order(rng, len(labels), buffer)
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
