"""Trait tables as people have them: units that differ, categories, several values in a cell, gaps.

A `TraitEncoding` turns such a table into numbers and remembers how, so that a class described
later is treated alike. Numbers on one scale (percentages, word vectors) stay as they are. What is
not on that scale is brought to it: every other trait gets the same spread as a typical number,
however many columns it takes. A gap becomes the mean, which speaks neither for nor against a class.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.messages import first_few
from latem.embeddings.trait import Trait, ranks
from latem.embeddings.trait_cells import (
    NO,
    YES,
    begins_with_number,
    find_separator,
    gaps_in_words,
    numbers_of,
    split_cell,
    texts_of,
)

if TYPE_CHECKING:
    import pandas as pd

SCALES = (  # words that have an order, from least to most
    ("tiny", "very small", "small", "medium", "large", "very large", "huge"),
    ("very low", "low", "medium", "moderate", "high", "very high"),
    ("very short", "short", "medium", "long", "very long"),
    ("thin", "medium", "thick"),
    ("light", "medium", "heavy"),
    ("weak", "medium", "strong"),
    ("slow", "medium", "fast"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("no", "few", "some", "many"),
    ("absent", "rare", "uncommon", "occasional", "common", "abundant"),
)
_FAR = 10.0  # times the typical spread: such a column is in another unit
_FEWEST_ALIKE = 8  # columns that make a scale of their own


@dataclass(frozen=True)
class TraitEncoding:
    """How a raw trait table becomes numbers.

    Attributes
    ----------
    traits : tuple of Trait
    notes : tuple of str
        What was done, in sentences.
    """

    traits: tuple[Trait, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def columns(self) -> list[str]:
        """Names of all columns of numbers."""
        return [column for trait in self.traits for column in trait.columns]

    @property
    def raw_columns(self) -> list[str]:
        """Names of the columns of the raw table that matter."""
        return [trait.name for trait in self.traits if trait.kind != "left out"]

    @classmethod
    def learn(
        cls, frame: pd.DataFrame, *, ordered: Mapping[str, Sequence[str]] | None = None
    ) -> TraitEncoding | None:
        """Encoding for a raw table; None if it is what models want already.

        Parameters
        ----------
        frame : DataFrame
            Class names as index, one column per trait.
        ordered : dict of column name to values, optional
            Values of ordered categories, from least to most.
        """
        _check_titles(frame)
        ordered = dict(ordered or {})
        odd = [name for name in ordered if name not in frame.columns]
        if odd:
            raise ValueError(
                f"ordered names {first_few(odd)}, which are not columns of the table; it has "
                f"{first_few(list(frame.columns))}."
            )
        parts = [
            replace(
                _Column.of(str(name), frame[name], ordered.get(name)),
                gaps=tuple(gaps_in_words(frame[name])),
            )
            for name in frame.columns
        ]
        spread = _typical_spread([part for part in parts if part.kind == "number"])
        traits = tuple(part.scaled(spread) for part in parts)
        notes = tuple(note for part in parts for note in part.notes(spread))
        if not notes:
            return None
        if not any(trait.columns for trait in traits):
            raise ValueError("The table has no column that tells classes apart; see its notes.")
        return cls(traits, notes)

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """Numbers of a raw table, of shape (n_classes, n_columns).

        Gaps and values that were not known are taken as unknown; a warning tells of the latter.
        """
        _check_titles(frame)
        missing = [name for name in self.raw_columns if name not in frame.columns]
        if missing:
            raise ValueError(
                f"The table lacks the traits {first_few(missing)}; add them, or leave cells empty "
                f"where a trait is not known."
            )
        used = [trait for trait in self.traits if trait.columns]
        known = [[text is not None for text in texts_of(frame[trait.name])] for trait in used]
        blank = frame.index[~np.any(known, axis=0)] if known else frame.index[:0]
        if len(blank):
            raise ValueError(
                f"The table says nothing about {first_few(blank.tolist())}: every cell is empty; "
                f"describe at least one trait."
            )
        parts = [trait.encode(frame[trait.name]) for trait in used]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(frame), 0))

    def decode(self, vector: np.ndarray) -> dict[str, str] | None:
        """Row of a raw table that becomes these numbers, as texts; None if there is none."""
        cells: dict[str, str] = {}
        start = 0
        for trait in self.traits:
            end = start + len(trait.columns)
            if trait.columns:
                cell = trait.decode(vector[start:end])
                if cell is None:
                    return None
                cells[trait.name] = cell
            start = end
        return cells

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for files."""
        return {
            "traits": [
                {
                    "name": t.name, "kind": t.kind, "values": list(t.values), "mean": list(t.mean),
                    "scale": list(t.scale), "fill": list(t.fill), "form": t.form,
                }
                for t in self.traits
            ],
            "notes": list(self.notes),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, content: Any) -> TraitEncoding:
        """Encoding from what `to_dict` gave; KeyError, TypeError or ValueError if it is odd."""
        traits = []
        for item in content["traits"]:
            trait = Trait(
                name=str(item["name"]),
                kind=str(item["kind"]),
                values=tuple(map(str, item["values"])),
                mean=tuple(map(float, item["mean"])),
                scale=tuple(map(float, item["scale"])),
                fill=tuple(map(float, item["fill"])),
                form=str(item["form"]),
            )
            width = len(trait.columns)
            numbers = (trait.mean, trait.scale, trait.fill)
            if any(len(part) != width for part in numbers) or not np.isfinite(numbers).all():
                raise ValueError(f"trait {trait.name!r} of odd numbers")
            traits.append(trait)
        return cls(tuple(traits), tuple(map(str, content.get("notes", ()))))


# -- learning -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A raw column, understood: its kind, and its numbers with NaN for gaps."""

    name: str
    kind: str
    values: tuple[str, ...]
    numbers: np.ndarray  # (n_classes, n_columns)
    form: str = ""
    remark: str = ""
    gaps: tuple[str, ...] = ()  # words that were taken for gaps

    @classmethod
    def of(cls, name: str, cells: pd.Series, order: Sequence[str] | None) -> _Column:
        import pandas as pd

        if order is None and isinstance(cells.dtype, pd.CategoricalDtype) and cells.cat.ordered:
            order = [str(value) for value in cells.cat.categories]
        if order is None and pd.api.types.is_float_dtype(cells.dtype):
            numbers = cells.to_numpy(np.float64)
            if np.isfinite(numbers).all():  # the usual case of tables that are numbers already
                return cls(name, "number", (), numbers[:, None])
        texts = texts_of(cells)
        known = [text for text in texts if text is not None]
        if order is not None:
            return cls._ordered(name, texts, tuple(map(str, order)), "in the order that is given")
        if not known:
            return cls(name, "left out", (), np.empty((len(texts), 0)), remark="it is empty")
        found = numbers_of(name, texts, cells.index)
        if found is not None:
            numbers, form = found
            return cls(name, "number", (), numbers[:, None], form)
        return cls._words(name, texts, known)

    @classmethod
    def _words(cls, name: str, texts: list[str | None], known: list[str]) -> _Column:
        lowered = {text.lower() for text in known}
        if lowered <= YES | NO:
            blank_means_no = lowered <= YES and len(known) < len(texts)
            values = [
                (0.0 if blank_means_no else np.nan) if t is None else float(t.lower() in YES)
                for t in texts
            ]
            remark = "yes or no" + (", an empty cell is no" if blank_means_no else "")
            return cls(name, "number", (), np.array(values)[:, None], "yes", remark)
        for scale in SCALES:
            if len(lowered) > 1 and lowered <= set(scale):
                return cls._ordered(
                    name, texts, tuple(v for v in scale if v in lowered), "as they are usual"
                )
        separator = find_separator(known)
        if separator:
            return cls._several(name, texts, separator)
        distinct = sorted(set(known))
        if len(distinct) > 2 and len(distinct) > 0.9 * len(known):
            remark = "nearly every class has another text there, which tells nothing of new ones"
            return cls(name, "left out", (), np.empty((len(texts), 0)), remark=remark)
        from sklearn.preprocessing import OneHotEncoder

        encoder = OneHotEncoder(categories=[distinct], sparse_output=False, handle_unknown="ignore")
        cells = np.array([[text if text is not None else ""] for text in texts], object)
        numbers = encoder.fit(np.array(distinct, object)[:, None]).transform(cells)
        numbers[[text is None for text in texts]] = np.nan
        return cls(name, "category", tuple(distinct), numbers)

    @classmethod
    def _ordered(
        cls, name: str, texts: list[str | None], order: tuple[str, ...], how: str
    ) -> _Column:
        lowered = [value.lower() for value in order]
        odd = sorted({t for t in texts if t is not None and t.lower() not in lowered})
        if odd:
            raise ValueError(
                f"Column {name!r} holds {first_few(odd)}, not among the ordered values "
                f"{first_few(order)}."
            )
        numbers = ranks(texts, tuple(lowered))
        remark = f"{' < '.join(order)}, {how}"
        return cls(name, "ordered", tuple(lowered), numbers, remark=remark)

    @classmethod
    def _several(cls, name: str, texts: list[str | None], separator: str) -> _Column:
        from sklearn.preprocessing import MultiLabelBinarizer

        lists = [split_cell(text, separator) for text in texts]
        values = sorted({value for parts in lists for value in parts})
        numbers = MultiLabelBinarizer(classes=values).fit_transform(lists).astype(np.float64)
        numbers[[text is None for text in texts]] = np.nan
        return cls(name, "several", tuple(values), numbers, separator)

    @property
    def n_gaps(self) -> int:
        return int(np.isnan(self.numbers).any(axis=1).sum()) if self.numbers.size else 0

    @property
    def spread(self) -> float:
        """Root of the summed variances of its columns, gaps aside."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns of gaps only
            return float(np.sqrt(np.nansum(np.nanvar(self.numbers, axis=0))))

    def stays(self, spread: float | None) -> bool:
        """Whether its numbers stay as they are, but for gaps."""
        plain = self.kind == "number" and self.form in ("", "decimal comma")
        return plain and spread is not None and self.spread <= _FAR * spread

    def scaled(self, spread: float | None) -> Trait:
        """The trait with its numbers brought to the typical spread."""
        width = self.numbers.shape[1]
        if self.kind == "left out":
            return Trait(self.name, self.kind, mean=(), scale=(), fill=())
        mean = np.nanmean(self.numbers, axis=0)
        if self.stays(spread):
            zeros, ones = (0.0,) * width, (1.0,) * width
            return Trait(
                self.name, self.kind, mean=zeros, scale=ones, fill=tuple(mean), form=self.form
            )
        scale = (1.0 if spread is None else spread) / (self.spread or 1.0)
        return Trait(
            self.name, self.kind, self.values, tuple(mean), (scale,) * width, tuple(mean), self.form
        )  # fmt: skip

    def notes(self, spread: float | None) -> list[str]:
        """What was done to it."""
        notes = []
        if self.kind == "left out":
            notes.append(f"{self.name!r} is left out: {self.remark}.")
        elif self.kind == "category":
            notes.append(f"{self.name!r} has the categories {first_few(self.values)}.")
            if sum(map(begins_with_number, self.values)) > len(self.values) / 2:
                notes.append(
                    f"{self.name!r} is taken for words, though most begin with a number; if they "
                    f"are numbers, write plain ones, all in one unit."
                )
        elif self.kind == "several":
            notes.append(
                f"{self.name!r} has several values in a cell, apart by {self.form!r}: "
                f"{first_few(self.values)}."
            )
        elif self.remark:
            notes.append(f"{self.name!r} is {self.remark}.")
        elif self.form == "decimal comma":
            notes.append(f"{self.name!r} is read with decimal commas.")
        elif self.form:
            notes.append(f"{self.name!r} is in {self.form!r}.")
        if self.kind == "number" and not self.remark and not self.stays(spread):
            notes.append(f"{self.name!r} is standardised: its numbers are on another scale.")
        if self.n_gaps and self.kind != "left out":
            gaps = "gap" if self.n_gaps == 1 else "gaps"
            written = f" ({first_few(self.gaps)})" if self.gaps else ""
            lacking = self.kind in ("category", "several") and self.gaps
            advice = "; if they mean that a class lacks it, write 'absent'" if lacking else ""
            notes.append(
                f"{self.name!r} has {self.n_gaps} {gaps}{written}, filled with the mean{advice}."
            )
        return notes


def _check_titles(frame: pd.DataFrame) -> None:
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(
            f"The table has two columns called {first_few(sorted(set(map(str, twice))))}; give "
            f"every trait a name of its own."
        )


def _typical_spread(columns: list[_Column]) -> float | None:
    """Spread that numbers on one scale share; None if there is no such scale."""
    plain = [c for c in columns if c.form in ("", "decimal comma")]
    spreads = np.array([c.spread for c in plain if c.spread > 0])
    if not len(spreads):
        return None
    typical = float(np.median(spreads))
    if len(spreads) < _FEWEST_ALIKE:  # too few to tell which one is odd
        return typical if spreads.max() <= _FAR * spreads.min() else None
    alike = spreads <= _FAR * typical
    if alike.sum() >= max(_FEWEST_ALIKE, len(spreads) / 2):
        return float(np.median(spreads[alike]))
    return None
