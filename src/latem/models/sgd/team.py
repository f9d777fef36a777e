"""One epoch in class space, by one thread or by several side by side, to the same bytes.

The compiled part is `latem.models.sgd.team_kernels`. Here are the arrays that the threads share,
the threads, which live for one epoch, and what happens when one of them fails: it tells the others
to stop, they are waited for, and its error is raised in the thread that trains.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from latem.core.arrays import aligned_empty
from latem.core.threads import (
    Helper,
    resolve_threads,
    single_threaded_blas,
    start_thread,
    wait_for,
)
from latem.models.sgd.loop import Load, Schedule

NEAR_CACHE = 2**19  # bytes of class rows that are worked on at a time
FEWEST_GROUPS = 8  # of classes: threads take one after the other
FEWEST_CLASSES = 4  # in a group: images are read once for all of them
SMALLEST_EPOCH = 2**24  # products of numbers; less is done before a second thread has begun
MOST_THREADS = 4  # more would wait for the walk through the block most of the time
_LOOKS = 50_000  # at what another thread does, before this one sleeps; some tens of microseconds
_NAP = 50e-6  # seconds
_WAIT = 0.01  # seconds for another thread to load a block, before looking whether to stop
_SPAN = 32  # blocks in one compiled call: how long Ctrl-C may wait


@dataclass(frozen=True)
class ClassRows:
    """What an epoch works on; see `latem.models.sgd.kernels` for the letters.

    Attributes
    ----------
    rows, steps : ndarray of shape (n_classes, n_maps, n_features)
        V and B, changed in place.
    vectors : ndarray of shape (n_classes, n_dimensions)
    gram : ndarray of shape (n_classes, n_classes)
    """

    rows: np.ndarray
    steps: np.ndarray
    vectors: np.ndarray
    gram: np.ndarray

    @property
    def n_groups(self) -> int:
        """Groups of classes that threads take."""
        n_classes, *shape = self.rows.shape
        near = NEAR_CACHE // (int(np.prod(shape)) * self.rows.itemsize)
        in_group = max(min(near, n_classes // FEWEST_GROUPS), FEWEST_CLASSES)
        return -(-n_classes // in_group)

    def team_size(self, n_visits: int, n_threads: int | None) -> int:
        """How many threads an epoch is worth."""
        work = n_visits * int(np.prod(self.rows.shape[1:]))
        if work < SMALLEST_EPOCH:
            return 1
        return max(1, min(resolve_threads(n_threads), self.n_groups // 2, MOST_THREADS))


class Epoch:
    """One pass over images in blocks of visits.

    Parameters
    ----------
    on : ClassRows
    load : callable
        Scaled features of the images with the given row numbers, in the given array.
    classes : ndarray of shape (n_visits, 2)
        Class numbers of each visit: the true class and the rival.
    order : ndarray of shape (n_visits,)
        Row numbers of the images.
    schedule : Schedule
    length : int
        Visits in a block.
    visits, violations : ndarray of shape (n_maps,)
        Counters by map, added to.
    """

    def __init__(
        self,
        on: ClassRows,
        load: Load,
        classes: np.ndarray,
        order: np.ndarray,
        schedule: Schedule,
        length: int,
        visits: np.ndarray,
        violations: np.ndarray,
    ):
        from latem.models.sgd import team_kernels  # late: answering needs no compiler

        n_classes, n_maps, self._width = on.rows.shape
        number = on.rows.dtype.type
        self._kernels = team_kernels
        self._on, self._load, self._classes, self._order = on, load, classes, order
        self._step, self._margin = number(schedule.step), number(schedule.margin)
        self._visits, self._violations = visits, violations
        self._length = length = min(length, max(len(order), 1))
        self._n_blocks = -(-len(order) // length)
        self._sync = team_kernels.new_sync()
        self._scores = np.empty((length, 2, n_maps), number)
        self._product = np.empty((length, length), number)
        self._winners = np.empty((length, 2), np.int64)
        self._updates = np.empty(length, np.int64), np.zeros(n_maps + 1, np.int64)
        self._by_map = np.empty(2 * length, np.int64)
        self._by_class = np.empty(n_classes + 1, np.int64), np.empty(2 * length, np.int64)
        self._totals = np.zeros(2)
        self._loading = threading.Lock()
        self._errors: list[BaseException] = []

    def run(self, n_threads: int) -> float:
        """Visit all images; returns the summed loss."""
        # the block that is scored, the one before it, whose steps are taken, and the next one
        n_images = 2 if n_threads == 1 else 3
        self._images = aligned_empty((n_images, self._length, self._width), self._on.rows.dtype)
        if n_threads == 1:
            self._alone()
        else:
            self._together(n_threads)
        return float(self._totals[1])

    def _alone(self) -> None:
        for block in range(self._n_blocks + 1):
            self._load_block(block)
            self._lead(block, block + 1, 1)

    def _together(self, n_threads: int) -> None:
        threads: list[Helper] = []
        try:
            for number in range(1, n_threads):
                task = self._load_and_help if number == 1 else self._help_only
                thread = Helper(partial(self._guarded, task), name="latem-train")
                threads.append(thread)
                if not start_thread(thread):
                    threads.pop()
                    break
            if threads:
                self._lead_all()
            else:  # at the end of the interpreter's life there are no new threads
                self._alone()
        finally:
            try:
                self._stop()
            finally:  # even if an interruption strikes right here
                self._stop()
            wait_for(threads, self._errors.append)
        if self._errors:
            raise self._errors[0]

    # -- what threads do ----------------------------------------------------------------------

    def _lead_all(self) -> None:
        block, end = 0, self._n_blocks + 1
        while block < end and not self._errors:
            following = self._lead(block, min(block + _SPAN, end), _LOOKS)
            if following == block and not self._load_block(block, wait=False):
                time.sleep(_NAP)
            block = following

    def _load_and_help(self) -> None:
        self._load_block(0)
        for block in range(self._n_blocks + 1):
            self._load_block(block + 1)
            self._help(block, block + 1)

    def _help_only(self) -> None:
        for block in range(0, self._n_blocks + 1, _SPAN):
            self._help(block, min(block + _SPAN, self._n_blocks + 1))

    def _guarded(self, task: Any) -> None:
        try:
            with single_threaded_blas():
                task()
        except BaseException as error:
            self._errors.append(error)
            self._stop()

    def _stop(self) -> None:
        self._kernels.set_to(self._sync, self._kernels.STOP, 1)

    def _stopped(self) -> bool:
        return bool(self._sync[self._kernels.STOP, 0])

    # -- a block ------------------------------------------------------------------------------

    def _load_block(self, block: int, *, wait: bool = True) -> bool:
        """Load the images of a block that nobody has loaded; says whether it has.

        The leader does so, too, where a helper is late because the machine has other work.
        """
        if block >= self._n_blocks:
            return False
        while not self._loading.acquire(timeout=_WAIT if wait else 0):
            if not wait or self._stopped():
                return False
        try:
            if self._stopped() or self._sync[self._kernels.LOADED, 0] > block:
                return False
            rows = self._order[block * self._length : (block + 1) * self._length]
            self._load(rows, self._images[block % len(self._images)])
            self._kernels.set_to(self._sync, self._kernels.LOADED, block + 1)
            return True
        finally:
            self._loading.release()

    def _lead(self, first: int, last: int, patience: int) -> int:
        on = self._on
        return int(
            self._kernels.lead(
                self._sync, first, last, on.n_groups, patience, self._images, self._classes,
                on.vectors, on.gram, self._step, self._margin, on.rows, on.steps, self._scores,
                self._product, self._winners, *self._updates, self._by_map, *self._by_class,
                self._visits, self._violations, self._totals,
            )
        )  # fmt: skip

    def _help(self, first: int, last: int) -> None:
        on, block = self._on, first
        while block < last and not self._stopped():
            following = self._kernels.help_with(
                self._sync, block, last, on.n_groups, _LOOKS, self._images, self._classes, on.gram,
                self._step, on.rows, on.steps, self._scores, self._winners, *self._updates,
                self._by_map, *self._by_class, self._totals,
            )  # fmt: skip
            if following == block:
                time.sleep(_NAP)
            block = following
