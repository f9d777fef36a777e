"""Class-disjoint splits: random ones, other val classes, rows held out for the generalised setting.

The paper averages over five splits: the published one and four drawn at random with the same
numbers of classes (Sec. 5). Nothing but the number of classes is kept fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from latem.datasets.dataset import Split, ZeroShotDataset

PAPER_SIZES: Mapping[str, tuple[int, int, int]] = {
    "CUB": (100, 50, 50),
    "AWA": (27, 13, 10),
    "Dogs": (60, 25, 28),
}
"""Train, val and test classes of the paper's sets.

Table 1 of the paper gives train + val and test: 150/50, 40/10 and 85/28. How train + val divides
into train and val is not published for AWA and Dogs; there, and for CUB, about a third is val.
"""


def random_class_splits(
    classes: Sequence[Any], sizes: tuple[int, int, int] | str, n: int = 5, seed: int = 0
) -> list[Split]:
    """Splits of some classes at random.

    Parameters
    ----------
    classes : sequence of class names
        Their order does not matter.
    sizes : (n_train, n_val, n_test), or the name of one of the paper's sets
        "CUB", "AWA" or "Dogs". Classes beyond the sum of the sizes are in no part.
    n : int
        Number of splits.
    seed : int
        The same seed gives the same splits; asking for more does not change the first ones.

    Returns
    -------
    list of Split

    Examples
    --------
    >>> split, = random_class_splits(["ant", "bee", "cat", "dog"], (2, 1, 1), n=1)
    >>> sorted(split.train + split.val + split.test)
    ['ant', 'bee', 'cat', 'dog']
    """
    if isinstance(sizes, str):
        if sizes not in PAPER_SIZES:
            raise ValueError(
                f"The paper's sets are {', '.join(PAPER_SIZES)}, not {sizes!r}; give three numbers."
            )
        sizes = PAPER_SIZES[sizes]
    names = sorted(set(classes))
    n_train, n_val, n_test = sizes
    if min(n_train, n_test) < 1 or n_val < 0 or n < 1:
        raise ValueError(
            f"A split needs at least one train and one test class and no negative number, and n "
            f"must be at least 1; got sizes={tuple(sizes)}, n={n}."
        )
    if sum(sizes) > len(names):
        raise ValueError(
            f"sizes {tuple(sizes)} ask for {sum(sizes)} classes, but there are {len(names)}."
        )
    splits = []
    for number in range(n):
        rng = np.random.default_rng([seed, number])
        order = [names[i] for i in rng.permutation(len(names))]
        parts = order[:n_train], order[n_train : n_train + n_val], order[n_train + n_val :]
        train, val, test = (tuple(sorted(part)) for part in (*parts[:2], parts[2][:n_test]))
        splits.append(Split(train, val, test))
    return splits


def draw_val(
    classes: Sequence[Any], n_val: int, seed: int = 0
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Some classes divided at random into train and val, both sorted.

    Parameters
    ----------
    classes : sequence of class names
        Seen classes; their order does not matter.
    n_val : int
        At least one class must be left to learn from.
    seed : int

    Examples
    --------
    >>> train, val = draw_val(["ant", "bee", "cat"], 1)
    >>> len(train), len(val)
    (2, 1)
    """
    names = sorted(set(classes))
    if not 0 <= n_val < max(len(names), 1):
        raise ValueError(
            f"The val classes are drawn from {len(names)} seen classes that have images, and one "
            f"must be left to learn from: ask for 0 to {max(len(names) - 1, 0)}, not {n_val}."
        )
    order = np.random.default_rng(seed).permutation(len(names))
    val = {names[i] for i in order[:n_val]}
    return tuple(name for name in names if name not in val), tuple(sorted(val))


def redraw_seen(
    dataset: ZeroShotDataset,
    split: str | Split = "standard",
    *,
    n_val: int | None = None,
    held_out: float | None = None,
    seed: int = 0,
) -> Split:
    """A split with the same unseen classes, and other val classes or held-out images.

    Parameters
    ----------
    dataset : ZeroShotDataset
    split : str or Split
        Its test classes stay as they are.
    n_val : int, optional
        Number of val classes, drawn at random from the seen ones that have images; without it,
        train and val classes stay as they are.
    held_out : float, optional
        Share of each seen class's images to keep from training, 0 for none; without it, the same
        images are held out as before.
    seed : int
        Of both draws.

    Returns
    -------
    Split
        `write_split` saves it with a dataset folder.

    Examples
    --------
    >>> from latem.datasets import make_latent_world
    >>> world = make_latent_world(random_state=0)
    >>> split = redraw_seen(world, n_val=5, held_out=0.2)
    >>> len(split.val), split.test == world.split().test
    (5, True)
    """
    if held_out is not None and not 0 <= held_out < 1:
        raise ValueError(f"held_out must be a share from 0 to below 1, but is {held_out}.")
    old = dataset.split(split) if isinstance(split, str) else split
    train, val = old.train, old.val
    if n_val is not None:
        pictured = set(dataset.labels.tolist())
        train, val = draw_val([c for c in train + val if c in pictured], n_val, seed)
        bare = (c for c in old.train + old.val if c not in pictured)
        train = tuple(sorted((*train, *bare)))
    if held_out is None:
        return Split(train, val, old.test, old.held_out)
    new = Split(train, val, old.test)
    return hold_out(dataset, new, held_out, seed) if held_out else new


def hold_out(dataset: ZeroShotDataset, split: Split, share: float = 0.2, seed: int = 0) -> Split:
    """The same split with some images of every seen class kept out of training.

    They are what the generalised setting measures seen classes on.

    Parameters
    ----------
    dataset : ZeroShotDataset
    split : Split
    share : float
        Share of each seen class's images, rounded; at least one stays to learn from.
    seed : int

    Returns
    -------
    Split
    """
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, but is {share}.")
    rng = np.random.default_rng(seed)
    held: list[int] = []
    for name in sorted(split.train + split.val):
        rows = dataset.rows([name])
        count = min(round(share * len(rows)), max(len(rows) - 1, 0))
        held.extend(sorted(rng.permutation(rows)[:count].tolist()))
    return Split(split.train, split.val, split.test, tuple(sorted(held)))
