"""Five splits are five different ones."""

from dataclasses import replace

import numpy as np
import pytest

from latem import ClassEmbeddings, Split, ZeroShotDataset, make_latent_world, random_class_splits
from latem.experiments.five_splits import division, five_names, with_five_splits

SIZES = (13, 3, 5)  # as in the standard split


def world_with(**splits):
    world = make_latent_world(n_seen=16, n_unseen=5, n_images=2, n_features=8, random_state=0)
    return replace(world, splits={"standard": world.split(), **splits})


def drawn(n, seed=0):
    return random_class_splits(world_with().classes.tolist(), SIZES, n=n, seed=seed)


def shuffled(split):
    return Split(split.train[::-1], split.val[::-1], split.test[::-1])


def different(dataset):
    names = five_names(dataset)
    return len({division(dataset.split(name)) for name in names}) == len(names) == 5


def test_where_there_are_none_the_first_four_draws_are_taken():
    five, notes = with_five_splits(world_with())
    assert [five.split(name) for name in five_names(five)[1:]] == drawn(4)
    assert notes == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_splits_that_are_there_are_not_drawn_again(n):
    """`latem data split --n 3` draws the same ones first."""
    given = {f"random{i}": split for i, split in enumerate(drawn(n), start=1)}
    assert len(given["random1"].train) == len(world_with().split().train)
    five, notes = with_five_splits(world_with(**given))
    assert different(five)
    assert {name: five.split(name) for name in given} == given
    assert sorted(five.splits) == ["random1", "random2", "random3", "random4", "standard"]
    assert notes == []


def test_a_split_of_the_user_s_is_kept():
    given = random_class_splits(world_with().classes.tolist(), (8, 4, 5), n=1, seed=9)[0]
    five, _ = with_five_splits(world_with(random3=given))
    assert five.split("random3") == given
    assert different(five)


def test_the_standard_split_is_not_drawn_again():
    first = drawn(1)[0]
    five, _ = with_five_splits(world_with(standard=shuffled(first)))
    assert different(five)
    assert first not in [five.split(name) for name in five_names(five)]


def test_equal_splits_count_once():
    one, two = drawn(2, seed=3)
    held = replace(shuffled(one), held_out=(0,))
    world = world_with(random1=one, random2=held, random3=two, random4=shuffled(two))
    five, notes = with_five_splits(world)
    assert different(five)
    assert five_names(five) == ["standard", "random1", "random3", "random5", "random6"]
    assert five.split("random1") == one
    assert notes == [
        "its splits random1 and random2 divide the classes alike and count once",
        "its splits random3 and random4 divide the classes alike and count once",
    ]


def test_a_random_split_equal_to_the_standard_one_does_not_count():
    standard = world_with().split()
    five, notes = with_five_splits(world_with(random1=shuffled(standard)))
    assert different(five)
    assert "random1" not in five.splits
    assert notes == ["its splits standard and random1 divide the classes alike and count once"]


def test_four_different_ones_are_left_as_they_are():
    world = world_with(**{f"random{i}": split for i, split in enumerate(drawn(5), start=1)})
    five, notes = with_five_splits(world)
    assert (five.splits, notes) == (world.splits, [])


def tiny(n_train):
    names = [f"c{i}" for i in range(n_train + 1)]
    table = ClassEmbeddings(names, np.eye(n_train + 1), name="att")
    splits = {"standard": Split(names[1:], (), names[:1])}
    return ZeroShotDataset(np.ones((n_train + 1, 2)), names, {"att": table}, splits)


def test_the_last_possible_divisions_are_found():
    assert different(with_five_splits(tiny(4))[0])  # five classes, one of them unseen: five ways


def test_too_few_classes_for_five_splits():
    with pytest.raises(ValueError, match="3 train, 0 val and 1 test classes .* too few ways"):
        with_five_splits(tiny(3))
