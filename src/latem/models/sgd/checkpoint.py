"""Checkpoints: the exact state of a training, so that it can go on after an interruption.

A checkpoint is a data file like a model file. It knows which data and parameters it belongs to
and refuses to continue any other training.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path

import numpy as np

from latem.core import storage
from latem.core.alone import only_one
from latem.models.sgd.loop import Progress, Space


class Checkpoint:
    """Keeps one training's state in one file.

    Parameters
    ----------
    path : path
    every : int
        Epochs between writes; the last epoch is always written.
    fingerprint : str
        Digest of the data and parameters the training depends on.
    """

    def __init__(self, path: str | PathLike[str], every: int, fingerprint: str):
        if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
            raise ValueError(f"checkpoint_every must be a whole number from 1, not {every!r}.")
        self.path = Path(path)
        self.every = every
        self.fingerprint = fingerprint
        if self.path.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder; name a file for the checkpoint.")
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {str(self.path.parent)!r} to keep the checkpoint in."
            )

    def held(self) -> AbstractContextManager[None]:
        """Keep other trainings from writing to the same file while this one does."""
        return only_one(
            self.path.with_name(f".{self.path.name}.lock"),
            f"Another training writes to the checkpoint {self.path}; wait for it, or name another "
            f"file.",
            target=self.path,
            remove=True,
        )

    def write(self, space: Space, progress: Progress, *, last: bool = False) -> None:
        """Write the state if it is time to."""
        if not last and progress.epoch % self.every:
            return
        tensors = {
            **{f"space.{name}": array for name, array in space.state().items()},
            "visits": progress.visits,
            "violations": progress.violations,
        }
        meta = {
            "fingerprint": self.fingerprint,
            "form": space.form,
            "seed": progress.seed,
            "epoch": progress.epoch,
            "stopped": progress.stopped,
            "history": progress.history,
        }
        storage.write_file(self.path, "checkpoint", tensors, meta)

    def resume(self, space: Space, progress: Progress, n_epochs: int, *, fixed_seed: bool) -> None:
        """Bring `space` and `progress` to the stored state, if there is one.

        With a fixed seed the checkpoint must have the same one; otherwise its seed is taken
        over, since the maps of the checkpoint were drawn from it.
        """
        if not self.path.exists():
            return
        tensors, meta = storage.read_file(self.path, "checkpoint")
        try:
            same = meta["fingerprint"] == self.fingerprint and meta["form"] == space.form
            if not same or (fixed_seed and meta["seed"] != progress.seed):
                raise ValueError(
                    f"{self.path} belongs to a training with other data, parameters or seed; "
                    f"delete it to start again, or name another checkpoint file."
                )
            seed, epoch, history = meta["seed"], meta["epoch"], meta["history"]
            stopped = meta["stopped"]
            self._check_record(seed, epoch, stopped, history, progress)
            if epoch > n_epochs:
                raise ValueError(
                    f"{self.path} has already been trained for {epoch} epochs, more than "
                    f"n_epochs={n_epochs}; raise n_epochs or delete it to start again."
                )
            visits, violations = tensors["visits"], tensors["violations"]
            state = {name: tensors[f"space.{name}"] for name in space.state()}
            self._restore(space, state)
        except KeyError as error:
            raise storage.FileFormatError(f"{self.path} is damaged: it lacks {error}.") from None
        if not visits.dtype == violations.dtype == np.int64:
            raise storage.FileFormatError(f"{self.path} is damaged: its counts are not numbers.")
        if not visits.shape == violations.shape == (len(space),):
            raise storage.FileFormatError(f"{self.path} is damaged: its counts do not fit.")
        progress.visits, progress.violations = visits, violations
        progress.seed, progress.epoch, progress.history = seed, epoch, history
        progress.stopped = stopped

    def _restore(self, space: Space, state: dict[str, np.ndarray]) -> None:
        """Bring a space to a stored state, if it can be one."""
        for name, array in state.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise storage.FileFormatError(
                    f"{self.path} is damaged: {name} is not finite; delete it to start again."
                )
        try:
            space.restore(state)
        except ValueError as error:
            raise storage.FileFormatError(f"{self.path} is damaged: {error}") from None

    def _check_record(
        self, seed: object, epoch: object, stopped: object, history: object, progress: Progress
    ) -> None:
        """Refuse a record of the epochs so far that this training could not go on with."""
        whole = all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in (seed, epoch)
        )
        if not whole or not isinstance(stopped, bool) or not isinstance(history, dict):
            raise storage.FileFormatError(f"{self.path} is damaged: its record cannot be.")
        for name in progress.history:
            if not isinstance(history[name], list) or len(history[name]) != epoch:
                raise storage.FileFormatError(
                    f"{self.path} is damaged: its history of {name} does not have {epoch} epochs."
                )
