"""The models that are served: read from files, and read again when a file is replaced.

A request takes a model from the shelf once and keeps it until it is answered, so that a model can
be replaced while requests are under way. A file that cannot be read leaves the model that is there
in its place.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from latem.datasets.dataset import ZeroShotDataset
from latem.features.encoders import load_encoder
from latem.inspection.maps import with_maps
from latem.inspection.speakers import explains, inner_model
from latem.models.answering import Asked
from latem.models.files import load
from latem.server.problems import ProblemError
from latem.workflows.explore import Explorer
from latem.workflows.invent import Words, described_table, words_for
from latem.workflows.score_summary import score_summary

_N_ASKED = 64  # questions that are kept ready
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """What models are looked at with.

    Attributes
    ----------
    dataset : ZeroShotDataset or None
    split : str
    pictures : path or None
        Folder that image names are relative to.
    words : path or None
        File of word vectors.
    encoder_options : mapping
        Options for the encoder, such as a local weight file.
    """

    dataset: ZeroShotDataset | None = None
    split: str = "standard"
    pictures: Path | None = None
    words: Path | None = None
    encoder_options: Mapping[str, Any] = field(default_factory=dict)


class Served:
    """A model as it is served, with what is made of it once.

    Parameters
    ----------
    name : str
    model : a fitted model
    source : Source
    version : int
        How often the name has been given to a model.
    """

    def __init__(self, name: str, model: Any, source: Source, version: int = 1):
        self.name, self.model, self.version = name, model, version
        self.explorer = Explorer(model, source.dataset, source.split, source.pictures)
        self._source = source
        self._asked: OrderedDict[Any, Asked] = OrderedDict()
        self._lock = threading.Lock()
        self.cards = {str(card["name"]): card for card in self.explorer.classes()}
        self.scores: dict[str, Any] | None = None

    # -- questions ----------------------------------------------------------------------------

    def asked(self, key: Any, make: Callable[[], Asked]) -> Asked:
        """A question, kept for the next request that asks the same."""
        with self._lock:
            if key in self._asked:
                self._asked.move_to_end(key)
                return self._asked[key]
        found = make()
        with self._lock:
            self._asked[key] = found
            while len(self._asked) > _N_ASKED:
                self._asked.popitem(last=False)
        return found

    # -- what it can do -----------------------------------------------------------------------

    @cached_property
    def encoder(self) -> Any:
        """The encoder of pictures; the error says why there is none."""
        if self.model.encoder_ is None:
            raise ProblemError(
                409,
                "This model does not know which encoder made its features, so it cannot name "
                "pictures: send features, or train it on a dataset made by latem embed images.",
            )
        try:
            return _encoder(
                json.dumps(dict(self.model.encoder_), sort_keys=True),
                tuple(sorted(self._source.encoder_options.items())),
            )
        except (ImportError, ValueError, OSError) as error:
            raise ProblemError(409, str(error)) from None

    @cached_property
    def why_no_pictures(self) -> str:
        """Why photos cannot be named, or nothing."""
        try:
            assert self.encoder is not None
        except ProblemError as error:
            return error.detail
        return ""

    @cached_property
    def words(self) -> Words:
        """What can be made of typed words."""
        return words_for(self.model, self._source.words)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What a client wants to know before it asks."""
        model = self.model
        inner = inner_model(model, "serve")
        try:
            described_table(model)
            describes = True
        except ValueError:
            describes = False
        table = getattr(inner, "class_table_", None)
        n_seen = len(model.classes_)
        return {
            "name": self.name,
            "kind": type(model).__name__,
            "version": self.version,
            "n_features": int(model.n_features_in_),
            "n_seen": n_seen,
            "n_unseen": len(self.cards) - n_seen,
            "encoder": None if model.encoder_ is None else model.encoder_["name"],
            "names_pictures": not self.why_no_pictures,
            "why_no_pictures": self.why_no_pictures,
            "calibrated": hasattr(model, "temperature_"),
            "rejects": hasattr(model, "acceptance_"),
            "explains": explains(inner),
            "n_maps": n_maps(model),
            "table": None if table is None else table.name,
            "describes": describes,
            "words": self.words.kind,
            "why_no_words": self.words.why_not,
        }

    def warm_up(self) -> None:
        """Make now what the first requests would wait for."""
        assert self.facts
        assert self.explorer.dataset is None or self.explorer.index

    def measure(self) -> None:
        """Find out how good the model is on the dataset; `scores` then tells, or says why not."""
        try:
            result = score_summary(self.explorer)
        except (ValueError, TypeError) as error:
            self.scores = {"status": "unavailable", "why": str(error), "result": None}
        else:
            self.scores = {"status": "ready", "why": "", "result": result}


@lru_cache(maxsize=4)
def _encoder(spec: str, options: tuple[tuple[str, Any], ...]) -> Any:
    """An encoder, which models of the same features and their next versions share."""
    return load_encoder(json.loads(spec), **dict(options))


def n_maps(model: Any) -> int:
    """Number of maps of a model; 0 if it has none."""
    try:
        return len(with_maps(model, "serve").maps_)
    except TypeError:
        return 0


class Shelf:
    """Models by name; the first is the default.

    Parameters
    ----------
    files : mapping of name to path, or to a fitted model
    source : Source
    noted : callable, optional
        Called with the name, "ok" or "failed", and the version, whenever a file was read.
    """

    def __init__(
        self,
        files: Mapping[str, Any],
        source: Source,
        noted: Callable[[str, str, int], None] | None = None,
    ):
        if not files:
            raise ValueError("There is no model to serve.")
        self._source, self._noted = source, noted
        self._paths: dict[str, Path] = {}
        self._stamps: dict[str, Any] = {}
        self._served: dict[str, Served] = {}
        for name, file in files.items():
            if isinstance(file, str | PathLike):
                self._paths[name] = Path(file)
                self._stamps[name] = _stamp(Path(file))
                file = load(file)
            self._put(Served(name, file, source))

    @property
    def names(self) -> list[str]:
        """Names of the models."""
        return list(self._served)

    def get(self, name: str | None = None) -> Served:
        """A model by its name, or the first."""
        if not name:
            return next(iter(self._served.values()))
        if name not in self._served:
            raise ProblemError(
                404, f"There is no model {name[:100]!r}; there are {', '.join(self._served)}."
            )
        return self._served[name]

    def refresh(self) -> list[str]:
        """Read the files again that were replaced; names of the models that are new now."""
        changed = []
        for name, path in self._paths.items():
            stamp = _stamp(path)
            if stamp is None or stamp == self._stamps[name]:
                continue
            self._stamps[name] = stamp
            version = self._served[name].version + 1
            try:
                served = Served(name, load(path), self._source, version)
                served.warm_up()
            except Exception as error:  # whatever is wrong with a file, the old model is there
                _log.error("%s was replaced, but cannot be served: %r", path, error)
                if self._noted is not None:
                    self._noted(name, "failed", version - 1)
                continue
            self._put(served)
            changed.append(name)
            _log.info("%s was replaced: version %d is served", path, version)
        return changed

    async def watch(self, seconds: float) -> None:
        """Look at the files again and again; ends when it is cancelled."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.refresh)

    def _put(self, served: Served) -> None:
        self._served[served.name] = served
        if self._noted is not None:
            self._noted(served.name, "ok", served.version)


def _stamp(path: Path) -> Any:
    """What changes when a file is replaced; None while there is none."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino
