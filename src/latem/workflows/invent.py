"""Inventing a class: what can be changed about a description, and descriptions from words.

What the explorer's sliders show, and what they and the server's other doors make of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from latem.embeddings.describe import Description, check_once
from latem.embeddings.table import ClassEmbeddings
from latem.embeddings.text import SentenceEncoder, text_embeddings
from latem.embeddings.trait import Trait
from latem.embeddings.word_files import WordVectors
from latem.embeddings.words import word_embeddings
from latem.inspection.families import MARK
from latem.inspection.speakers import inner_model
from latem.inspection.traits import is_numbered

LONE = "other traits"  # family of those that belong to none
_STEPS = 100  # of a slider
_N_WORDS = 200_000  # the most frequent ones are kept in memory


def described_table(model: Any) -> ClassEmbeddings:
    """The class table of a model whose columns have names; others are refused."""
    table = getattr(inner_model(model, "described_table"), "class_table_", None)
    if table is None:
        raise ValueError(
            f"{type(model).__name__} describes classes by several tables, so no single one can be "
            f"changed."
        )
    if is_numbered(table.columns):
        raise ValueError(
            f"The class table {table.name!r} has numbered columns only: there is no trait to "
            f"change by name."
        )
    return table


def describe_class(
    model: Any,
    name: str,
    *,
    like: Any = None,
    changes: Mapping[str, Any] | None = None,
    most: Iterable[str] = (),
    least: Iterable[str] = (),
) -> tuple[ClassEmbeddings, str]:
    """A new class, and what it is like in words.

    Parameters
    ----------
    model : a fitted model with one class table
    name : str
    like : class name or None
        The class it resembles; None is the mean of all classes.
    changes : mapping of trait to value, optional
        As for `Description.set`; a list is taken as several values, None as unknown.
    most, least : iterables of column names

    Returns
    -------
    table : ClassEmbeddings of one row
    described : str
    """
    start = Description(described_table(model), like)
    found = _description(model, start, changes, most, least)
    return found.named(name), repr(found)


def class_row(
    model: Any, name: str, *, like: Any = None, changes: Mapping[str, Any] | None = None,
    most: Iterable[str] = (), least: Iterable[str] = ()
) -> Any:  # fmt: skip
    """The class of `describe_class` as a row for a spreadsheet, a DataFrame."""
    start = Description(described_table(model), like)
    return _description(model, start, changes, most, least).to_frame(name)


def _description(
    model: Any,
    start: Description,
    changes: Mapping[str, Any] | None,
    most: Iterable[str],
    least: Iterable[str],
) -> Description:
    encoding = described_table(model).encoding
    traits = {} if encoding is None else {trait.name: trait for trait in encoding.traits}
    values = {
        column: _cell(value, traits.get(column)) for column, value in dict(changes or {}).items()
    }
    most, least = list(most), list(least)
    check_once([*most, *least])
    return start.most(*most).least(*least).set(values)


def _cell(value: Any, trait: Trait | None) -> Any:
    """A value as a cell of a raw table holds it."""
    if trait is None:
        return value
    if value is None:
        return ""
    return f"{trait.form} ".join(map(str, value)) if isinstance(value, list | tuple) else value


# -- what can be changed --------------------------------------------------------------------------


def trait_controls(model: Any, like: Any = None) -> list[dict[str, Any]]:
    """What can be changed about a class, by families.

    Parameters
    ----------
    model : a fitted model whose class table has named columns
    like : class name or None
        The class whose values are told; None is the mean of all classes.

    Returns
    -------
    list of dict
        Families with `name` and `traits`. A trait has `name`, `label`, `kind` ("number",
        "ordered", "category" or "several"), `value` (None if it is unknown), and `values`, or
        `low`, `high`, `step` and `unit`. Traits that are alike for all classes are left out.
    """
    table = described_table(model)
    vector = table.vectors.mean(axis=0) if like is None else table[like]
    places = {column: place for place, column in enumerate(table.column_names())}
    controls: list[dict[str, Any]] = []
    raw = () if table.encoding is None else table.encoding.traits
    for trait in raw:
        columns = [places.pop(column) for column in trait.columns]
        if columns:
            controls.append(_raw_control(trait, table.vectors[:, columns], vector[columns]))
    for column, place in places.items():
        of_all = table.vectors[:, place]
        if of_all.min() < of_all.max():
            controls.append(_slider(column, of_all, float(vector[place])))
    return _by_family(controls)


def _slider(name: str, of_all: np.ndarray, value: float, unit: str = "") -> dict[str, Any]:
    low, high = float(of_all.min()), float(of_all.max())
    return {
        **{"name": name, "label": name, "kind": "number", "low": low, "high": high},
        **{"step": _nice_step(high - low), "value": value, "unit": unit, "values": []},
    }


def _nice_step(width: float) -> float:
    """About a hundredth of the width of a slider: 1, 2 or 5 times a power of ten.

    >>> _nice_step(1), _nice_step(73), _nice_step(9000)
    (0.01, 0.5, 50.0)
    """
    rough = width / _STEPS
    power = 10.0 ** math.floor(math.log10(rough) + 1e-9)
    return float(f"{max(n * power for n in (1, 2, 5) if n * power <= rough * (1 + 1e-9)):.12g}")


def _raw_control(trait: Trait, of_all: np.ndarray, vector: np.ndarray) -> dict[str, Any]:
    """What can be changed about a raw trait."""
    cell = trait.decode(vector)
    if trait.kind == "number" and trait.form != "yes":
        scale, mean = trait.scale[0], trait.mean[0]
        unit = "" if trait.form == "decimal comma" else trait.form
        return _slider(trait.name, of_all[:, 0] / scale + mean, vector[0] / scale + mean, unit)
    values = ["no", "yes"] if trait.kind == "number" else list(trait.values)
    kind = "category" if trait.kind == "number" else trait.kind
    value: Any = cell or None
    if kind == "several":
        value = None if cell is None else [part.strip() for part in cell.split(trait.form) if part]
    return {
        **{"name": trait.name, "label": trait.name, "kind": kind, "low": None, "high": None},
        **{"step": None, "value": value, "unit": "", "values": values},
    }


def _by_family(controls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Controls gathered by the part of their names before "::" or ":", if several share it."""
    families: dict[str, list[dict[str, Any]]] = {}
    for control in controls:
        family, mark = _family(control["name"])
        families.setdefault(family if mark else "", []).append(control)
    found = []
    lone = families.pop("", [])
    for name, members in families.items():
        if len(members) == 1:
            lone += members
            continue
        for control in members:
            control["label"] = control["name"].removeprefix(name).lstrip(":").strip()
        found.append({"name": name, "traits": members})
    if lone:
        found.append({"name": LONE if found else "traits", "traits": lone})
    return found


def _family(name: str) -> tuple[str, str]:
    for mark in (MARK, ":"):
        family, found, member = name.partition(mark)
        if found and family.strip() and member.strip():
            return family, found
    return "", ""


# -- descriptions from words ----------------------------------------------------------------------


@dataclass(frozen=True)
class Words:
    """What makes class vectors of typed words, for a model whose table was made so.

    Attributes
    ----------
    kind : {"text", "words"} or None
        Sentences, words, or nothing.
    why_not : str
        What is missing, if it is nothing.
    encoder : SentenceEncoder or None
    vectors : WordVectors or None
    """

    kind: str | None = None
    why_not: str = ""
    encoder: SentenceEncoder | None = None
    vectors: Any = None

    def table(self, model: Any, name: str, typed: str) -> ClassEmbeddings:
        """Class table of one row, from what was typed."""
        own = inner_model(model, "Words").class_table_
        if self.kind is None:
            raise ValueError(self.why_not)
        if not typed.strip():
            raise ValueError("Nothing was typed: describe the class in a few words.")
        if self.kind == "text":
            found = text_embeddings({name: typed}, encoder=self.encoder, name=own.name)
        else:
            found, _ = word_embeddings([name], self.vectors, synonyms={name: typed}, name=own.name)
        return ClassEmbeddings([name], found.vectors, name=own.name, columns=own.columns)


def words_for(model: Any, vectors: str | PathLike[str] | None = None) -> Words:
    """What a model can make of typed words.

    Parameters
    ----------
    model : a fitted model
    vectors : path, optional
        File of word vectors that the model's class table was made from.
    """
    table = getattr(inner_model(model, "words_for"), "class_table_", None)
    if table is None or not is_numbered(table.columns):
        return Words(why_not="This model knows classes by traits: change these.")
    if vectors is not None:
        known = WordVectors(vectors, _N_WORDS)
        if known.vector_size != table.n_dimensions:
            raise ValueError(
                f"{vectors} holds vectors of {known.vector_size} numbers, but the class table "
                f"{table.name!r} has {table.n_dimensions}: give the vectors it was made from."
            )
        return Words("words", vectors=known)
    if table.name == "text":
        try:
            encoder = SentenceEncoder()
        except ImportError as error:
            return Words(why_not=str(error))
        if encoder.n_dimensions == table.n_dimensions:
            return Words("text", encoder=encoder)
    return Words(
        why_not=f"The class table {table.name!r} was made from word vectors or in another way: "
        f"start the server with --words FILE, the vectors it was made from."
    )
