"""The five splits of the paper's protocol: the standard one and four random ones.

The five must differ, or their mean and standard error would be those of fewer. Splits that a
dataset brings along are kept, each division of the classes once; what is lacking is drawn.
"""

from __future__ import annotations

import dataclasses
import itertools

from latem.datasets import Split, ZeroShotDataset, random_class_splits
from latem.experiments.tables import STANDARD

N_RANDOM = 4
_PREFIX = "random"
_DRAWS = 200  # finds four new divisions among five or more, but for one chance in 10¹⁸

Division = tuple[frozenset, frozenset, frozenset]


def division(split: Split) -> Division:
    """Train, val and test classes of a split, whatever their order and the held-out images."""
    return frozenset(split.train), frozenset(split.val), frozenset(split.test)


def is_random(name: str) -> bool:
    """Whether a split's name says that it is a random one."""
    return name.startswith(_PREFIX)


def five_names(dataset: ZeroShotDataset) -> list[str]:
    """Names of the splits that count: the standard one and the first four random ones."""
    return [STANDARD, *sorted(filter(is_random, dataset.splits))[:N_RANDOM]]


def with_five_splits(dataset: ZeroShotDataset) -> tuple[ZeroShotDataset, list[str]]:
    """The dataset with four random splits besides its standard one, all different.

    Parameters
    ----------
    dataset : ZeroShotDataset
        With a split "standard". Of random splits that divide the classes alike, the first by name
        stays.

    Returns
    -------
    dataset : ZeroShotDataset
    notes : list of str
        Which splits count once.
    """
    standard = dataset.split(STANDARD)
    known = {division(standard): STANDARD}
    splits, notes = dict(dataset.splits), []
    for name in sorted(filter(is_random, dataset.splits)):
        if len(known) > N_RANDOM:
            break
        first = known.setdefault(division(splits[name]), name)
        if first != name:
            del splits[name]
            notes.append(f"its splits {first} and {name} divide the classes alike and count once")
    numbers = (f"{_PREFIX}{number}" for number in itertools.count(1))
    free = (name for name in numbers if name not in dataset.splits)
    for split in _drawn(standard) if len(known) <= N_RANDOM else ():
        if len(known) > N_RANDOM:
            break
        if division(split) not in known:
            name = next(free)
            splits[name] = split
            known[division(split)] = name
    if len(known) <= N_RANDOM:
        parts = (
            f"{len(standard.train)} train, {len(standard.val)} val and {len(standard.test)} test"
        )
        raise ValueError(
            f"The protocol needs {N_RANDOM} random splits that differ from each other and from the "
            f"standard one, but {parts} classes can be divided in too few ways; bring a dataset "
            f"with more classes."
        )
    return dataclasses.replace(dataset, splits=splits), notes


def _drawn(standard: Split) -> list[Split]:
    """Random splits of the same classes with the same sizes."""
    sizes = len(standard.train), len(standard.val), len(standard.test)
    return random_class_splits(standard.train + standard.val + standard.test, sizes, n=_DRAWS)
