"""Work on a Dask cluster: joblib's own backend, and workers that are checked first."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import joblib

from latem.core.storage import library_versions

_LOGS = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")
MISSING = "Work on a cluster needs dask and distributed: pip install 'latem[cluster]'."


@contextmanager
def on_cluster(address: str | None, *, seconds: float = 10.0) -> Iterator[None]:
    """Tasks inside run on the workers of a Dask scheduler; see `latem.core.parallel`.

    Parameters
    ----------
    address : str or None
        Of the scheduler, such as "tcp://10.0.0.1:8786"; None leaves things as they are.
    seconds : float
        How long to wait for the scheduler.

    Raises
    ------
    ImportError
        Without dask and distributed.
    OSError
        If there is no scheduler, or it has no workers.
    ValueError
        If workers have other versions of the library, or of what decides its rounding.
    """
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(MISSING) from None
    try:
        client = Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise OSError(
            f"There is no scheduler at {address!r} ({reason}); start one with `dask scheduler`, "
            "and give the address that it prints, such as tcp://127.0.0.1:8786."
        ) from None
    with _silent(), client:  # also when it closes
        _check_workers(client, address)
        try:
            with joblib.parallel_config("dask", client=client, pure=False):
                yield
        except (CancelledError, OSError):
            if client.status == "running":
                raise
            raise OSError(
                f"The scheduler at {address} is gone; start it again and run the same command."
            ) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Nothing of what dask logs about lost connections: errors say it."""
    logs = [logging.getLogger(name) for name in _LOGS]
    before = [(log.handlers, log.propagate) for log in logs]
    for log in logs:
        log.handlers, log.propagate = [logging.NullHandler()], False
    try:
        yield
    finally:
        for log, (handlers, propagate) in zip(logs, before, strict=True):
            log.handlers, log.propagate = handlers, propagate


def _own_versions() -> dict[str, str]:
    return library_versions()


def _check_workers(client: Any, address: str) -> None:
    """All workers would give the same bytes as this process."""
    own = _own_versions()
    found = client.run(library_versions, on_error="return")
    if not found:
        raise OSError(
            f"The scheduler at {address} has no workers; start some with `dask worker {address}`."
        )
    for worker, theirs in found.items():
        if isinstance(theirs, BaseException):
            raise ValueError(f"Worker {worker} cannot import latem ({theirs}); install it there.")
        for name, version in own.items():
            if theirs.get(name) != version:
                raise ValueError(
                    f"Worker {worker} has {name} {theirs.get(name)}, this process {version}: "
                    "install the same versions, or results would depend on where they were made."
                )
