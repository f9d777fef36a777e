"""`read_info`: what a model file holds, told by its header alone.

A model file begins with its description: what kind of model it is, which classes it knows, how it
was trained. Reading that takes a few milliseconds however large the arrays behind it are. What
`load` refuses for its description is refused here, in the same words; the arrays are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from latem.core import storage
from latem.core.memory import in_bytes
from latem.core.messages import shortened
from latem.core.storage import TensorShape
from latem.models.files import find_row, told_as_damage
from latem.models.measured import Measured

_NOT_LEARNED = ("table.vectors", "scaling.shift", "scaling.scale", "training.rows")
_CALIBRATION = ("temperature", "rejection_threshold", "seen_penalty")
_DEEPEST = 20  # models inside of models


@dataclass(frozen=True)
class TableInfo:
    """A class table that a model knows classes by.

    Attributes
    ----------
    name : str
    n_classes : int
    n_columns : int
    columns : tuple of str, or None
        Names of the columns, if they have any.
    """

    name: str
    n_classes: int
    n_columns: int
    columns: tuple[str, ...] | None = field(repr=False)


@dataclass(frozen=True)
class MemberInfo:
    """A member of a committee or a fusion.

    Attributes
    ----------
    name, model : str
        What it is called, and the kind of model it is.
    parameters : dict
    """

    name: str
    model: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about itself.

    Attributes
    ----------
    path : str
    n_bytes : int
        Size of the file.
    model : str
        Kind of model.
    chosen_model : str or None
        Of a search, the kind of model whose parameters it chose.
    parameters : dict
    members : tuple of MemberInfo
        Of a committee or a fusion.
    seen, known : tuple
        Names of the classes it learned from, and of all that it can name.
    tables : tuple of TableInfo
        One, or one for each member of a fusion.
    n_features : int
        Width of the features.
    encoder : dict or None
        Spec of the encoder that made them.
    temperature, rejection_threshold, seen_penalty, false_accept_rate : float or None
        How it answers; None if that was not chosen.
    measured : Measured or None
        What was chosen and how good it was when it was trained; None if the file does not know.
    training_digest : str or None
        Digest of the images it was fitted to.
    n_training_images : int or None
        How many different ones they were.
    n_numbers : int
        Numbers it has learned.
    tensors : dict of str to TensorShape
        Types and shapes of all arrays of the file.
    format : int
        Version of the file format.
    versions : dict of str to str
        Of the libraries that it was written with.
    """

    path: str
    n_bytes: int
    model: str
    chosen_model: str | None
    parameters: Mapping[str, Any]
    members: tuple[MemberInfo, ...]
    seen: tuple[Any, ...]
    known: tuple[Any, ...]
    tables: tuple[TableInfo, ...]
    n_features: int
    encoder: Mapping[str, Any] | None
    temperature: float | None
    rejection_threshold: float | None
    seen_penalty: float | None
    false_accept_rate: float | None
    measured: Measured | None
    training_digest: str | None
    n_training_images: int | None
    n_numbers: int
    tensors: Mapping[str, TensorShape]
    format: int
    versions: Mapping[str, str]

    def __repr__(self) -> str:
        kind = self.model
        if self.chosen_model is not None:
            kind += f" (chose {self.chosen_model})"
        told = [
            kind,
            f"{len(self.seen)} seen of {len(self.known)} known classes",
            f"{self.n_features} features",
            in_bytes(self.n_bytes),
        ]
        found = self.measured
        if found is not None and found.unseen_score is not None:
            told.append(f"{found.unseen_score:.1%} right on {found.n_unseen} unseen classes")
        elif found is not None and found.held_out_score is not None:
            told.append(f"{found.held_out_score:.1%} right on held-out classes")
        return f"<ModelInfo of {shortened(self.path)}: {', '.join(told)}>"

    @property
    def unseen(self) -> tuple[Any, ...]:
        """Names of the classes it can name without having seen an image of them."""
        seen = set(self.seen)
        return tuple(name for name in self.known if name not in seen)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        shapes = {
            name: {"dtype": one.dtype, "shape": list(one.shape)}
            for name, one in self.tensors.items()
        }
        return asdict(self) | {"unseen": self.unseen, "tensors": shapes}


def read_info(path: str | PathLike[str]) -> ModelInfo:
    """What a model file holds, without reading its arrays.

    Parameters
    ----------
    path : path
        A file that a model's `save` wrote.

    Returns
    -------
    ModelInfo

    Raises
    ------
    FileFormatError, OSError
        As `latem.load` does.

    Examples
    --------
    >>> import tempfile, latem
    >>> world = latem.make_latent_world(n_poses=1, n_images=6, random_state=0)
    >>> model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.safetensors")
    ...     info = latem.read_info(f"{folder}/model.safetensors")
    >>> info.model, len(info.seen), len(info.unseen), info.parameters["gamma"]
    ('ESZSL', 60, 10, 1.0)
    >>> info
    <ModelInfo of /...: ESZSL, 60 seen of 70 known classes, 32 features, ... kB>
    """
    tensors, meta = storage.read_header(path, "model")
    with told_as_damage(path):
        return _info(str(path), Path(path).stat().st_size, tensors, meta)


def _info(
    path: str, n_bytes: int, tensors: dict[str, TensorShape], meta: dict[str, Any]
) -> ModelInfo:
    outer = _content(meta)
    inner = outer
    while "inner" in inner:  # a search
        inner = _content(inner["inner"])
    tables = list(_tables(inner, tensors))
    known = set(tables[0][1]).intersection(*(names for _, names in tables))
    calibration = _mapping(meta.get("calibration", {}), "calibration")
    acceptance = _mapping(meta.get("acceptance", {}), "acceptance")
    rows = [shape.size for name, shape in tensors.items() if name == "training.rows"]
    record = inner.get("record", inner)
    return ModelInfo(
        path=path,
        n_bytes=n_bytes,
        model=outer["model"],
        chosen_model=None if inner is outer else inner["model"],
        parameters=_mapping(inner["params"], "params"),
        members=tuple(_members(record)),
        seen=tuple(_names(_seen(inner), "classes")),
        known=tuple(name for name in tables[0][1] if name in known),
        tables=tuple(table for table, _ in tables),
        n_features=_width(tensors),
        encoder=_optional(meta, "encoder", _mapping),
        measured=_measured(meta, record),
        training_digest=_optional(meta, "training_digest", _text),
        n_training_images=rows[0] if rows else None,
        n_numbers=sum(shape.size for name, shape in tensors.items() if _is_learned(name)),
        tensors=tensors,
        format=meta["format"],
        versions=_mapping(meta.get("versions", {}), "versions"),
        false_accept_rate=_optional(acceptance, "false_accept_rate", _number),
        **{name: _optional(calibration, name, _number) for name in _CALIBRATION},
    )


def _content(meta: Any) -> dict[str, Any]:
    """Description of a model, of a kind that is registered."""
    content = dict(_mapping(meta, "model"))
    find_row(content["model"])
    return content


def _seen(content: Mapping[str, Any], depth: int = 0) -> Any:
    """Names of the seen classes; a fusion has those of its first member."""
    if "inner" in content:
        return _seen(_content(content["inner"]), _deeper(depth))
    if "classes" not in content and "members" in content:
        return _seen(_content(_some(content["members"])[0]["content"]), _deeper(depth))
    return content["classes"]["names"]


def _tables(
    content: Mapping[str, Any], tensors: Mapping[str, TensorShape], start: str = "", depth: int = 0
) -> Iterable[tuple[TableInfo, list[Any]]]:
    """Class tables of a model, or of a fusion's members, and the classes they describe."""
    if "inner" in content:
        yield from _tables(_content(content["inner"]), tensors, start, _deeper(depth))
        return
    if "table" not in content and "members" in content:
        for i, member in enumerate(_some(content["members"])):
            inner = _content(member["content"])
            yield from _tables(inner, tensors, f"{start}{i}/", _deeper(depth))
        return
    table = _mapping(content["table"], "table")
    names = list(_names(table["names"], "table"))
    shape = tensors[f"{start}table.vectors"].shape
    if len(shape) != 2 or shape[0] != len(names):
        raise ValueError(f"table.vectors of shape {shape} for {len(names)} classes")
    columns = table["columns"]
    if columns is not None and len(columns) != shape[1]:
        raise ValueError(f"{len(columns)} names of columns for {shape[1]} columns")
    kept = None if columns is None else tuple(map(str, columns))
    yield TableInfo(_text(table["name"], "table"), len(names), shape[1], kept), names


def _members(record: Any) -> Iterable[MemberInfo]:
    """Members of a committee or a fusion; none of any other model."""
    for member in _mapping(record, "record").get("members", ()):
        content = _content(member["content"])
        kind = content["model"]
        while "inner" in content:
            content = _content(content["inner"])
            kind = f"{kind} ({content['model']})"
        yield MemberInfo(
            _text(member["name"], "member"), kind, _mapping(content["params"], "params")
        )


def _measured(meta: Mapping[str, Any], record: Mapping[str, Any]) -> Measured | None:
    """The record of training; of a search what it chose, and of ESZSLCV too."""
    if "measured" in meta:
        return Measured.from_dict(meta["measured"])
    if "best_params" in meta:
        score = _number(meta["best_score"], "best_score")
        chosen = _mapping(meta["best_params"], "best_params")
        return Measured(chosen=chosen, held_out_score=score)
    if meta["model"] == "ESZSLCV":
        return Measured(chosen={name: _number(record[name], name) for name in ("gamma", "lam")})
    return None


def _width(tensors: Mapping[str, TensorShape]) -> int:
    """Width of the features, by the first scaling in the file."""
    for name in sorted(tensors):
        if name.rpartition("/")[2] == "scaling.shift":
            (width,) = tensors[name].shape
            return width
    raise KeyError("scaling.shift")


def _is_learned(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last not in _NOT_LEARNED and not last.startswith("acceptance.")


def _deeper(depth: int) -> int:
    if depth >= _DEEPEST:
        raise ValueError(f"models inside of models, more than {_DEEPEST} deep")
    return depth + 1


def _optional(found: Mapping[str, Any], name: str, check: Any) -> Any:
    return None if name not in found else check(found[name], name)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"its {name} is {value!r:.40}, not a table of names and values")
    return value


def _some(members: Any) -> list[Any]:
    if not isinstance(members, list) or not members:
        raise ValueError(f"its members are {members!r:.40}, not a list of models")
    return members


def _names(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or any(isinstance(one, list | dict) for one in value):
        raise TypeError(f"the names of its {name} are {value!r:.40}, not a list of names")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"its {name} is {value!r:.40}, not a text")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"its {name} is {value!r:.40}, not a finite number")
    return float(value)
