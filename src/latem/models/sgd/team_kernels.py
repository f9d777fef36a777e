"""The compiled part of training by several threads: who does what, and when.

Blocks of visits are taken as in `latem.models.sgd.kernels`. One thread *leads*: it sorts a block's
pairs, opens the block, and walks through it when it is scored. Others *help*: in an open block all
threads take groups of classes, one after the other, and bring them up to date and score them with
`work_on_classes`. A group is the same piece of work whoever takes it, so the result does not depend
on the number of threads. One of the helpers, or the leader if it is alone, loads the images ahead.

Nobody waits long in here: a function whose waiting was in vain returns, and is called again. What
has been done is written in `sync` alone, so it goes on where it was.

Key to the single letters
-------------------------
N, L, b      groups of classes, visits in a whole block, number of a block from 0
c (n, 2)     class numbers of all visits of the epoch: the true class, the rival
sync (·, 8)  what has happened so far, in the first column; a row is a cache line
others       as in `latem.models.sgd.kernels`

Counts in `sync` only grow: a thread that is late cannot take what belongs to a later block, because
a group is taken by raising TAKEN from the very number that was read.
"""

import numpy as np

from latem.core.slim import needed
from latem.models.sgd.kernels import (
    pairs_by_class,
    plain,
    updates_by_map,
    walk_block,
    work_on_classes,
)

# rows of `sync`: blocks loaded, blocks opened, groups taken and done in all blocks; groups taken in
# the open block from the first class on and from the last; whether to stop
LOADED, OPENED, TAKEN, DONE, LOW, HIGH, STOP = 0, 1, 2, 3, 4, 5, 6

types = needed("numba.core.types", "Compiled trainings")
cgutils = needed("numba.core.cgutils", "Compiled trainings")
intrinsic = needed("numba.extending", "Compiled trainings").intrinsic


def new_sync():
    """Nothing has happened yet."""
    return np.zeros((7, 8), np.int64)


def _place(context, builder, signature, args):
    """Address of sync[row, 0]."""
    kind = signature.args[0]
    array = context.make_array(kind)(context, builder, args[0])
    zero = context.get_constant(types.intp, 0)
    where = [context.cast(builder, args[1], signature.args[1], types.intp), zero]
    return cgutils.get_item_pointer(context, builder, kind, array, where, wraparound=False)


@intrinsic
def read(typing, sync, row):
    """sync[row, 0], as the latest of all threads has left it."""

    def code(context, builder, signature, args):
        return builder.load_atomic(_place(context, builder, signature, args), "seq_cst", 8)

    return types.int64(sync, row), code


@intrinsic
def write(typing, sync, row, value):
    """sync[row, 0] = value, seen by all threads with everything that was written before."""

    def code(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        number = context.cast(builder, args[2], signature.args[2], types.int64)
        builder.store_atomic(number, place, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(sync, row, value), code


@intrinsic
def add_one(typing, sync, row):
    """sync[row, 0] += 1 in one step; gives what it was before."""

    def code(context, builder, signature, args):
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", _place(context, builder, signature, args), one, "seq_cst")

    return types.int64(sync, row), code


@intrinsic
def add_one_to(typing, sync, row, value):
    """sync[row, 0] += 1 in one step if it is `value`; says whether it was."""

    def code(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        old = context.cast(builder, args[2], signature.args[2], types.int64)
        new = builder.add(old, context.get_constant(types.int64, 1))
        pair = builder.cmpxchg(place, old, new, "seq_cst", "seq_cst")
        return builder.extract_value(pair, 1)

    return types.boolean(sync, row, value), code


@plain
def set_to(sync, row, value):
    """Let all threads see a new value."""
    write(sync, row, value)


@plain
def reached(sync, row, value, patience):
    """Whether sync[row] is at least `value`, or becomes it in as many looks as `patience` says."""
    for _ in range(patience):
        if read(sync, row) >= value:
            return True
        if read(sync, STOP):
            return False
    return False


@plain
def take_groups(
    sync, b, N, from_end, U, uc, win, u, begin, update, G, step, V, B, X, end, pair, scores
):
    """Take groups of classes of block b until none is left.

    The leader begins with the first classes and helpers with the last ones, in every block: so most
    classes stay with the same processor, in its caches.
    """
    C = V.shape[0]
    some = np.empty(8, np.int64)
    a = np.empty(8, V.dtype)
    while True:
        taken = read(sync, TAKEN)
        if taken >= (b + 1) * N:
            return
        if not add_one_to(sync, TAKEN, taken):
            continue
        group = N - 1 - add_one(sync, HIGH) if from_end else add_one(sync, LOW)
        work_on_classes(
            C * group // N, C * (group + 1) // N, U, uc, win, u, begin, update, G, step, V, B,
            X, end, pair, scores, some, a,
        )  # fmt: skip
        add_one(sync, DONE)


@plain
def block_of(c, L, b):
    """Class numbers of the visits of block b; none before the first block or after the last."""
    first = min(max(b * L, 0), c.shape[0])
    return c[first : min(max((b + 1) * L, 0), c.shape[0])]


@plain
def lead(
    sync, first, last, N, patience, images, c, Y, G, step, margin, V, B, S, product, win, u, begin,
    update, end, pair, visits, violations, totals,
):  # fmt: skip
    """Lead blocks first to last; returns the block to go on with, if one was waited for in vain.

    `images` (·, L, d) hold the blocks in turn; `totals` the updates of the latest block and the
    summed loss. After the last block one more, without visits, takes the steps it has left.
    """
    n, L = images.shape[:2]
    n_blocks = -(-c.shape[0] // L)
    for b in range(first, last):
        now, before = block_of(c, L, b), block_of(c, L, b - 1)
        X, U = images[b % n, : now.shape[0]], images[(b - 1) % n]
        scores = S[: now.shape[0]]
        n_updates = int(totals[0])
        if read(sync, OPENED) <= b:
            if not reached(sync, LOADED, min(b + 1, n_blocks), patience):
                return b
            pairs_by_class(now, end, pair)
            write(sync, LOW, 0)
            write(sync, HIGH, 0)
            write(sync, OPENED, b + 1)
        flat = scores.reshape((2 * now.shape[0], V.shape[1]))
        take_groups(
            sync, b, N, False, U, before, win, u[:n_updates], begin, update, G, step, V, B,
            X, end, pair, flat,
        )  # fmt: skip
        if not reached(sync, DONE, (b + 1) * N, patience):
            return b
        n_updates, loss = walk_block(
            X, now, Y, G, scores, step, margin, product, win, u, visits, violations
        )
        updates_by_map(win, u[:n_updates], begin, update)
        totals[0] = n_updates
        totals[1] += loss
    return last


@plain
def help_with(
    sync, first, last, N, patience, images, c, G, step, V, B, S, win, u, begin, update, end, pair,
    totals,
):  # fmt: skip
    """Help with blocks first to last; returns the block to go on with."""
    n, L = images.shape[:2]
    for b in range(first, last):
        if not reached(sync, OPENED, b + 1, patience):
            return b
        now, before = block_of(c, L, b), block_of(c, L, b - 1)
        take_groups(
            sync, b, N, True, images[(b - 1) % n], before, win, u[: int(totals[0])], begin, update,
            G, step, V, B, images[b % n, : now.shape[0]], end, pair,
            S[: now.shape[0]].reshape((2 * now.shape[0], V.shape[1])),
        )  # fmt: skip
        if not reached(sync, DONE, (b + 1) * N, patience):
            return b
    return last
