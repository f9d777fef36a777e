"""Orders of visits: every image once, and through a buffer block by block."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from latem.models.sgd.visits import (
    BLOCK_ROWS,
    BLOCKS,
    epoch_generator,
    random_visits,
    visiting_order,
)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 700), st.integers(1, 800), st.integers(0, 9))
def test_every_image_once_and_whole_blocks_in_every_buffer(n, buffer, seed):
    order = visiting_order(np.random.default_rng(seed), n, buffer)
    assert sorted(order.tolist()) == list(range(n))
    if buffer >= n:
        return
    size = max(buffer // BLOCKS, 1)
    for start in range(0, n, buffer):
        held = np.sort(order[start : start + buffer])
        blocks, counts = np.unique(held // size, return_counts=True)
        whole = np.minimum(size, n - blocks * size)
        assert (counts != whole).sum() <= 2  # one that the buffer before began, one cut at its end


def test_a_buffer_for_all_images_changes_nothing():
    labels = np.arange(50) % 4
    for buffer in (50, 51, 10**9):
        for plain, other in zip(
            random_visits(3, 7, labels, 4), random_visits(3, 7, labels, 4, buffer), strict=True
        ):
            np.testing.assert_array_equal(plain, other)


def test_blocks_are_no_longer_than_what_is_read_in_one_piece():
    buffer = 100 * BLOCK_ROWS
    order = visiting_order(np.random.default_rng(0), 4 * buffer, buffer)
    held = np.sort(order[:buffer])
    assert (held.reshape(-1, BLOCK_ROWS)[:, 0] % BLOCK_ROWS == 0).all()
    assert (np.diff(held.reshape(-1, BLOCK_ROWS)) == 1).all()


def test_blocks_and_images_are_shuffled_anew_in_every_epoch():
    n, buffer = 6400, 640
    first, second = (visiting_order(epoch_generator(0, epoch), n, buffer) for epoch in (1, 2))
    shared = np.intersect1d(first[:buffer], second[:buffer])
    assert 0 < len(shared) < buffer / 2
    for order in (first, second):
        neighbours = np.abs(np.diff(order[:buffer])) == 1
        assert neighbours.mean() < 0.1


def test_rivals_are_other_classes_than_the_images_of_this_order():
    labels = np.repeat(np.arange(5), 100)
    order, rivals = random_visits(0, 1, labels, 5, 64)
    assert (rivals != labels[order]).all()
    assert np.bincount(rivals, minlength=5).min() > 50
