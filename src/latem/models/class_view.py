"""What a class looks like to a model: one frozen value, made in `fit`.

It answers the two questions that models, searches, explanations and evaluations ask: which vectors
training uses, and which vectors may be the answer. Both come from the class table by the same
steps: the seen classes' mean is subtracted if the model centres its classes, vectors are divided
by their length if it normalises them; candidates are balanced besides, see `latem.models.balance`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from latem.core.arrays import unit_rows
from latem.core.messages import first_few
from latem.core.threads import single_threaded_blas
from latem.embeddings.describe import join_classes
from latem.embeddings.table import TABLE_SUFFIXES, ClassEmbeddings
from latem.models.balance import spreads

_N_KEPT = 4  # answers that are kept for the next call
GROUPS = ("seen", "unseen", "all")


@dataclass(frozen=True, eq=False)
class Candidates:
    """The classes that may be the answer.

    Attributes
    ----------
    names : ndarray of shape (n_classes,)
    vectors : ndarray of shape (n_classes, n_dimensions)
    """

    names: np.ndarray
    vectors: np.ndarray
    _prepared: list[tuple[Any, Any, Any]] = field(default_factory=list, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def prepared(self, learned: np.ndarray, option: Any, prepare: Callable[[], Any]) -> Any:
        """What `prepare` makes of these vectors, kept while it is asked for with the same array.

        Parameters
        ----------
        learned : ndarray
            What the model has learned; it must not be changed in place.
        option
            What else decides the result.
        prepare : callable
        """
        for known, with_option, made in tuple(self._prepared):
            if known is learned and with_option == option:
                return made
        made = prepare()
        self._prepared[:] = [(learned, option, made)]
        return made


@dataclass(frozen=True, eq=False)
class ClassView:
    """Class vectors as a fitted model uses them.

    Parameters
    ----------
    table : ClassEmbeddings
        All classes the model has a description of.
    seen : ndarray of shape (n_seen,)
        Classes it learned from.
    normalise : bool
        Whether vectors are divided by their length.
    centre : ndarray of shape (n_dimensions,) or None
        What is subtracted from every vector of the table.
    balance : ndarray of shape (n_dimensions, n_dimensions) or None
        M of the mean square yᵀ M y of a class's scores; candidates are divided by its root.
    dtype : str
        Precision of the vectors.
    """

    table: ClassEmbeddings
    seen: np.ndarray
    normalise: bool = True
    centre: np.ndarray | None = None
    balance: np.ndarray | None = None
    dtype: str = "float32"
    _kept: list[tuple[Any, Candidates]] = field(default_factory=list, init=False, repr=False)

    def centred(self) -> ClassView:
        """The same view with the mean of the seen classes' vectors subtracted from all."""
        return replace(self, centre=self.table.select(self.seen).vectors.mean(axis=0))

    def balanced(self, balance: np.ndarray | None) -> ClassView:
        """The same view with candidates balanced by another M, or by none."""
        return replace(self, balance=balance)

    def with_classes(self, more: ClassEmbeddings) -> ClassView:
        """The same view of a table with further classes."""
        other = replace(self, table=join_classes(self.table, more))
        other.check()
        return other

    def check(self) -> None:
        """Raise now what a class of the table would raise when it is used."""
        self._as_vectors(self.table, self.dtype)

    def training(self, dtype: Any = None) -> np.ndarray:
        """Vectors of the seen classes as training uses them, of shape (n_seen, n_dimensions)."""
        return self._as_vectors(
            self.table.select(self.seen), self.dtype if dtype is None else dtype
        )

    def candidates(self, classes: Any = None) -> Candidates:
        """Names and vectors of the classes meant by a `classes` argument.

        They are kept for the next calls with the same argument.

        Parameters
        ----------
        classes : None, "seen", "unseen", "all", list of names, or a class table
            None means the seen classes.
        """
        if isinstance(classes, Iterator):
            classes = list(classes)
        for known, chosen in tuple(self._kept):
            if _means_the_same(known, classes):
                return chosen
        table = self._meant(classes)
        with single_threaded_blas():
            chosen = Candidates(table.names, self._answering(table))
        if classes is None:  # with the names as they were given in training
            chosen = Candidates(self.seen, chosen.vectors)
        if _can_be_kept(classes):
            known = list(classes) if isinstance(classes, list | tuple | np.ndarray) else classes
            self._kept[:] = [*self._kept[1 - _N_KEPT :], (known, chosen)]
        return chosen

    def _meant(self, classes: Any) -> ClassEmbeddings:
        if is_class_table(classes):
            return self.table.matching(classes)
        names = meant_names(classes, self.seen.tolist(), self.table.names.tolist())
        return self.table.select(names)

    def _answering(self, table: ClassEmbeddings) -> np.ndarray:
        vectors = self._as_vectors(table, self.dtype)
        if self.balance is None:
            return vectors
        exact = vectors.astype(np.float64)
        with np.errstate(over="ignore"):
            balanced = (exact / spreads(exact, self.balance)[:, None]).astype(self.dtype)
        if not np.isfinite(balanced).all():
            raise ValueError(
                f"Scores are too small to be balanced in {self.dtype}: multiply the features by a "
                f"constant, scale them (feature_scaling), or use dtype='float64'."
            )
        return balanced

    def _as_vectors(self, table: ClassEmbeddings, dtype: Any) -> np.ndarray:
        if self.centre is None:
            vectors = table.unit_vectors() if self.normalise else table.vectors
        else:
            vectors = table.vectors - self.centre
            rounding = 10 * np.finfo(np.float64).eps * np.abs(table.vectors).max(axis=1)
            vectors[np.abs(vectors).max(axis=1) <= rounding] = 0  # the centre, but for rounding
            vectors = unit_rows(vectors) if self.normalise else vectors
        with np.errstate(over="ignore"):
            vectors = np.ascontiguousarray(vectors, dtype=dtype)
        too_large = ~np.isfinite(vectors).all(axis=1)
        if too_large.any():
            raise ValueError(
                f"The vectors of {first_few(table.names[too_large].tolist())} hold numbers that "
                f"are too large for {np.dtype(dtype)}; use normalize_classes=True, or divide the "
                f"table by a constant."
            )
        return vectors

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": []}


def is_class_table(classes: Any) -> bool:
    """Whether a `classes` argument is a table rather than names."""
    if isinstance(classes, str):
        return classes.lower().endswith(TABLE_SUFFIXES)
    if isinstance(classes, tuple) and len(classes) == 2:
        return np.ndim(classes[1]) == 2
    return isinstance(classes, ClassEmbeddings | pd.DataFrame | Mapping | PathLike)


def meant_names(classes: Any, seen: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """Names meant by a `classes` argument that is not a table.

    Parameters
    ----------
    classes : None, "seen", "unseen", "all" or list of names
    seen : sequence of class names
    known : sequence of class names
        All that are described, the seen ones included.
    """
    if classes is None or isinstance(classes, str):
        if classes is None or classes == "seen":
            return list(seen)
        if classes == "all":
            return list(known)
        if classes != "unseen":
            raise ValueError(
                f"classes must be 'seen', 'unseen', 'all', a list of names or a class table, not "
                f"{classes!r}; for a single class write [{classes!r}]."
            )
        learned = set(seen)
        names = [name for name in known if name not in learned]
        if not names:
            raise ValueError(
                "There are no unseen classes: every class of the table was seen in training. Give "
                "class_embeddings with more rows, or a table as classes (on the command line "
                "--classes new.csv, or --classes all)."
            )
        return names
    if not isinstance(classes, Iterable):
        raise TypeError(
            f"classes must be None, 'seen', 'unseen', 'all', a list of names or a class table, not "
            f"{classes!r}."
        )
    names = list(classes)
    if not names:
        raise ValueError("classes is empty; name at least one candidate class.")
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ValueError(f"classes names {first_few(twice)} more than once; name each once.")
    return names


def _can_be_kept(classes: Any) -> bool:
    """Whether an argument always means the same; files and frames may change."""
    if isinstance(classes, ClassEmbeddings | list | np.ndarray) or classes is None:
        return True
    if isinstance(classes, tuple):
        return not is_class_table(classes)
    return isinstance(classes, str) and classes in GROUPS


def _means_the_same(known: Any, classes: Any) -> bool:
    if isinstance(classes, list | tuple | np.ndarray):
        if not isinstance(known, list) or len(known) != len(classes) or is_class_table(classes):
            return False
        return known == (classes.tolist() if isinstance(classes, np.ndarray) else list(classes))
    if isinstance(classes, str) or classes is None:
        return type(known) is type(classes) and known == classes
    return known is classes
