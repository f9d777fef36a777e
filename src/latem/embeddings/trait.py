"""One column of a raw trait table: how its cells become numbers, and numbers cells again."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latem.core.messages import first_few
from latem.embeddings.trait_cells import (
    NO,
    WITH_UNIT,
    YES,
    comma_number,
    plain_number,
    split_cell,
    texts_of,
    unit_in_title,
)

if TYPE_CHECKING:
    import pandas as pd

_ROUNDING = 1e-6  # by which a number may miss a whole one that it stands for


@dataclass(frozen=True)
class Trait:
    """How one column of the raw table becomes numbers.

    Attributes
    ----------
    name : str
    kind : {"number", "ordered", "category", "several", "left out"}
    values : tuple of str
        Categories; of "ordered" from least to most.
    mean, scale : tuple of float
        Per column of numbers: what is subtracted, and what the rest is multiplied by.
    fill : tuple of float
        Per column of numbers: what stands for a gap, before that.
    form : str
        How cells are read: of "number" "", "decimal comma" or a unit; of "several" the separator.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    mean: tuple[float, ...] = (0.0,)
    scale: tuple[float, ...] = (1.0,)
    fill: tuple[float, ...] = (0.0,)
    form: str = ""

    @property
    def columns(self) -> list[str]:
        """Names of the columns of numbers; those of one trait share the part before "::"."""
        if self.kind in ("category", "several"):
            return [f"{self.name}::{value}" for value in self.values]
        return [] if self.kind == "left out" else [self.name]

    def encode(self, cells: pd.Series) -> np.ndarray:
        """Numbers of a raw column, of shape (n_classes, n_columns).

        Gaps and values that were not known are taken as unknown; a warning tells of the latter.
        """
        texts = texts_of(cells)
        odd = self._unknown(texts)
        if odd:
            warnings.warn(
                f"Trait {self.name!r} has the new values {first_few(odd)}, taken as unknown; the "
                f"model knows {first_few(self.values)}.",
                UserWarning,
                stacklevel=4,
            )
        return self._numbers(texts)

    def encode_cell(self, cell: Any) -> np.ndarray:
        """Numbers of one raw cell, of shape (n_columns,); a value that is not known is refused."""
        texts = texts_of([cell])
        odd = self._unknown(texts)
        if odd:
            raise ValueError(
                f"Trait {self.name!r} cannot be {first_few(odd)}: known are "
                f"{first_few(self.values)}; an empty text means unknown."
            )
        return self._numbers(texts)[0]

    def decode(self, numbers: np.ndarray) -> str | None:
        """Raw cell that becomes these numbers: a text, "" for a gap, None if there is none."""
        raw = np.asarray(numbers) / np.array(self.scale) + np.array(self.mean)
        if self.kind == "number":
            return self._number_text(float(raw[0]))
        whole = np.round(raw)
        if np.allclose(raw, whole, rtol=0, atol=_ROUNDING):
            if self.kind == "ordered" and 0 <= whole[0] < len(self.values):
                return self.values[int(whole[0])]
            values = [
                value for value, is_there in zip(self.values, whole, strict=False) if is_there
            ]
            if self.kind != "ordered" and set(whole.tolist()) <= {0.0, 1.0}:
                if self.kind == "several" and values:
                    return f"{self.form} ".join(values)
                if len(values) == 1:
                    return values[0]
        return "" if np.allclose(raw, self.fill, rtol=0, atol=_ROUNDING) else None

    def _number_text(self, number: float) -> str:
        if (
            self.form == "yes"
            and abs(number - round(number)) < _ROUNDING
            and round(number) in (0, 1)
        ):
            return "yes" if round(number) else "no"
        plain = f"{number:.12g}"
        return plain if self.form in ("", "yes", "decimal comma") else f"{plain} {self.form}"

    def _unknown(self, texts: list[str | None]) -> list[str]:
        """Values that the trait does not know, sorted."""
        if self.kind == "ordered":
            parts = [t for t in texts if t is not None and t.lower() not in self.values]
        elif self.kind in ("category", "several"):
            known = set(self.values)
            parts = [p for parts in self._parts(texts) for p in parts if p not in known]
        else:
            parts = []
        return sorted(set(parts))

    def _parts(self, texts: list[str | None]) -> list[list[str]]:
        """The values of each cell."""
        if self.kind == "category":
            return [[] if text is None else [text] for text in texts]
        return [split_cell(text, self.form) for text in texts]

    def _numbers(self, texts: list[str | None]) -> np.ndarray:
        if self.kind == "number":
            raw = _read_number_column(self, texts)
        elif self.kind == "ordered":
            raw = ranks(texts, self.values)
        else:
            place = {value: i for i, value in enumerate(self.values)}
            raw = np.zeros((len(texts), len(self.values)))
            for row, parts in enumerate(self._parts(texts)):
                known = [place[part] for part in parts if part in place]
                raw[row, known] = 1
                if not known:
                    raw[row] = np.nan
        raw = np.where(np.isnan(raw), np.array(self.fill), raw)
        return (raw - np.array(self.mean)) * np.array(self.scale)


def ranks(texts: list[str | None], order: tuple[str, ...]) -> np.ndarray:
    """Places in the order, of shape (n_classes, 1); NaN for gaps and unknown words."""
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(
        categories=[list(order)], handle_unknown="use_encoded_value", unknown_value=np.nan
    )
    encoder.fit(np.array(order, object)[:, None])
    cells = np.array([["" if text is None else text.lower()] for text in texts], object)
    return encoder.transform(cells)


def _read_number_column(trait: Trait, texts: list[str | None]) -> np.ndarray:
    values: list[float] = []
    for text in texts:
        if text is None:
            values.append(np.nan)
            continue
        number: float | None = plain_number(text)
        if trait.form == "yes" and number is None and text.lower() in YES | NO:
            number = float(text.lower() in YES)
        elif trait.form == "decimal comma" and number is None:
            number = comma_number(text)
        elif number is None and (match := WITH_UNIT.fullmatch(text)):
            units = {trait.form, unit_in_title(trait.name)} - {""}
            number = float(match.group(1)) if match.group(2) in units else None
        if number is None:
            wanted = {"": "a number", "yes": "yes or no"}.get(
                trait.form, f"a number ({trait.form})"
            )
            raise ValueError(f"Trait {trait.name!r} needs {wanted}, not {text!r}.")
        values.append(number)
    return np.array(values)[:, None]
