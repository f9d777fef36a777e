"""What a class looks like to a model: one frozen value, made in `fit`.

It answers the two questions that models, searches, explanations and evaluations ask: which vectors
training uses, and which vectors may be the answer. Both come from the class table by the same
steps: the seen classes' mean is subtracted if the model centres its classes, vectors are divided
by their length if it normalises them; with a kernel they become its features, see
`latem.models.kernel_features`, and are divided by their length again. Candidates are balanced
besides, see `latem.models.balance`.

A `classes` argument has one vocabulary everywhere: a group ("seen", "unseen", "all"), names, a
table of other classes, or a list that mixes these. In a list, a name of the model's table is that
class, even if it reads like a group or a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.messages import first_few, hint_of
from latem.core.slim import is_frame
from latem.core.threads import single_threaded_blas
from latem.embeddings.describe import join_classes
from latem.embeddings.table import TABLE_SUFFIXES, ClassEmbeddings
from latem.embeddings.table_checks import as_python
from latem.embeddings.table_files import EXCEL_SUFFIXES
from latem.models.balance import spreads
from latem.models.kernel_features import ClassKernel

_N_KEPT = 4  # answers that are kept for the next call
_ROUNDING = 1e-9  # by which two descriptions of a class may differ, of its largest number
_COMPARED = (str, int, float, bool, np.generic, ClassEmbeddings)  # by ==, with one answer
GROUPS = ("seen", "unseen", "all")


@dataclass(frozen=True, eq=False)
class Candidates:
    """The classes that may be the answer.

    Attributes
    ----------
    names : ndarray of shape (n_classes,)
    vectors : ndarray of shape (n_classes, width)
    table : ClassEmbeddings
        Their descriptions as they were given.
    similar : ndarray of shape (n_classes, n_seen), or None
        With a kernel, how much each is like the seen classes.
    """

    names: np.ndarray
    vectors: np.ndarray
    table: ClassEmbeddings
    similar: np.ndarray | None = None
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
    kernel : ClassKernel or None
        What the vectors are replaced by after that.
    balance : ndarray of shape (width, width) or None
        M of the mean square yᵀ M y of a class's scores; candidates are divided by its root.
    dtype : str
        Precision of the vectors.
    """

    table: ClassEmbeddings
    seen: np.ndarray
    normalise: bool = True
    centre: np.ndarray | None = None
    kernel: ClassKernel | None = None
    balance: np.ndarray | None = None
    dtype: str = "float32"
    _kept: list[tuple[Any, Candidates]] = field(default_factory=list, init=False, repr=False)

    def centred(self) -> ClassView:
        """The same view with the mean of the seen classes' vectors subtracted from all."""
        return replace(self, centre=self.table.select(self.seen).vectors.mean(axis=0))

    def with_kernel(self, width: float) -> ClassView:
        """The same view with vectors replaced by features of a kernel on the seen classes."""
        anchors = self._linear(self.table.select(self.seen))
        return replace(self, kernel=ClassKernel.of(anchors, width))

    @property
    def width(self) -> int:
        """Length of the vectors."""
        return self.table.n_dimensions if self.kernel is None else self.kernel.whitener.shape[1]

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
        classes : None, "seen", "unseen", "all", list of names, class table, or a list of these
            None means the seen classes. In a list, a class that comes up in several parts is one
            candidate; a table may not describe a class otherwise than the model's own does.
        """
        if isinstance(classes, Iterator):
            classes = list(classes)
        for known, chosen in tuple(self._kept):
            if _means_the_same(known, classes):
                return chosen
        table = self._meant(classes)
        with single_threaded_blas():
            chosen = Candidates(table.names, self._answering(table), table, self._similar(table))
        if classes is None:  # with the names as they were given in training
            chosen = Candidates(self.seen, chosen.vectors, table, chosen.similar)
        if _can_be_kept(classes):
            known = list(classes) if isinstance(classes, list | tuple | np.ndarray) else classes
            self._kept[:] = [*self._kept[1 - _N_KEPT :], (known, chosen)]
        return chosen

    def settled(self, classes: Any) -> Any:
        """The same candidates with every table read and matched, so that they stay the same."""
        classes = list(classes) if isinstance(classes, Iterator) else classes
        known = self.table.names.tolist()
        new = is_class_table(classes) or (_is_list(classes) and tables_among(classes, known))
        return self._meant(classes) if new else classes

    def _meant(self, classes: Any) -> ClassEmbeddings:
        if is_class_table(classes):
            return self.table.matching(classes)
        seen, known = self.seen.tolist(), self.table.names.tolist()
        if not _is_list(classes) or not tables_among(classes, known):
            return self.table.select(meant_names(classes, seen, known))
        return self._joined(list(classes), seen, known)

    def _joined(self, parts: list[Any], seen: list[Any], known: list[Any]) -> ClassEmbeddings:
        """Table of the classes meant by a list that mixes groups, names and tables."""
        new = tables_among(parts, known)
        own = [part for part in parts if not _is_one_of(part, new)]
        if own:
            meant_names(own, seen, known)  # what it refuses in a list of names it refuses here
        described: dict[Any, np.ndarray] = {}
        for part in parts:
            if _is_one_of(part, new):
                table = self.table.matching(part)
                self._check_known(table, described)
            else:
                table = self.table.select(meant_names([part], seen, known))
            for name in table.names.tolist():
                source = self.table if name in self.table else table
                described.setdefault(name, source[name])
        return ClassEmbeddings(
            described,
            np.array(list(described.values())),
            name=self.table.name,
            columns=self.table.columns,
            encoding=self.table.encoding,
        )

    def _check_known(self, table: ClassEmbeddings, described: Mapping[Any, np.ndarray]) -> None:
        """Refuse a table that describes a class otherwise than the model or an earlier table."""
        for name, vector in zip(table.names.tolist(), table.vectors, strict=True):
            before = self.table[name] if name in self.table else described.get(name, vector)
            if not np.allclose(before, vector, rtol=0, atol=_ROUNDING * np.abs(before).max()):
                raise ValueError(
                    f"A table among classes describes {name!r} otherwise than "
                    f"{'the model does' if name in self.table else 'another one'}; give the class "
                    f"another name, or give that table alone."
                )

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

    def _linear(self, table: ClassEmbeddings) -> np.ndarray:
        """Vectors before a kernel."""
        if self.centre is None:
            return table.unit_vectors() if self.normalise else table.vectors
        vectors = table.vectors - self.centre
        rounding = 10 * np.finfo(np.float64).eps * np.abs(table.vectors).max(axis=1)
        vectors[np.abs(vectors).max(axis=1) <= rounding] = 0  # the centre, but for rounding
        return unit_rows(vectors) if self.normalise else vectors

    def _similar(self, table: ClassEmbeddings) -> np.ndarray | None:
        return None if self.kernel is None else self.kernel.similarities(self._linear(table))

    def terms(self, chosen: Candidates) -> tuple[list[str], np.ndarray, np.ndarray]:
        """What candidates' vectors are made of, to say what a score is a sum of.

        Parameters
        ----------
        chosen : Candidates

        Returns
        -------
        columns : list of str
            Dimensions of the class table or, with a kernel, the seen classes ("like a zebra").
        loadings : ndarray of shape (n_classes, n_columns)
        basis : ndarray of shape (width, n_columns)
            Such that a score p · vector is the sum of (p @ basis) * loadings.
        """
        vectors = chosen.vectors.astype(np.float64)
        if self.kernel is None or chosen.similar is None:
            return self.table.column_names(), vectors, np.eye(self.width)
        plain = chosen.similar @ self.kernel.whitener
        lengths = np.einsum("ij,ij->i", plain, plain) / np.einsum("ij,ij->i", plain, vectors)
        columns = [f"like {name}" for name in self.seen.tolist()]
        return columns, chosen.similar / lengths[:, None], self.kernel.whitener.T

    def _as_vectors(self, table: ClassEmbeddings, dtype: Any) -> np.ndarray:
        vectors = self._linear(table)
        if self.kernel is not None:
            vectors = self.kernel(vectors)
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
        return classes.lower().endswith(TABLE_SUFFIXES + EXCEL_SUFFIXES)
    if isinstance(classes, tuple) and len(classes) == 2:
        names, vectors = classes
        if isinstance(names, str) or is_class_table(names) or isinstance(vectors, ClassEmbeddings):
            return False  # a list that mixes groups, names and tables
        return np.ndim(vectors) == 2
    return isinstance(classes, ClassEmbeddings | Mapping | PathLike) or is_frame(classes)


def tables_among(classes: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """Tables in a list of candidates; a text that is a known name is no path of a table."""
    names = set(known)
    return [
        part
        for part in classes
        if is_class_table(part) and not (isinstance(part, str) and part in names)
    ]


def meant_names(classes: Any, seen: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """Names meant by a `classes` argument without tables.

    Parameters
    ----------
    classes : None, "seen", "unseen", "all", or a list of names and these
        In a list, a known name is that class even if it reads like a group.
    seen : sequence of class names
    known : sequence of class names
        All that are described, the seen ones included.
    """
    if classes is None or isinstance(classes, str):
        return _group(classes, seen, known)
    if not isinstance(classes, Iterable):
        raise TypeError(
            f"classes must be None, 'seen', 'unseen', 'all', a list of names or a class table, not "
            f"{classes!r}; a list may mix these."
        )
    parts = list(classes)
    if not parts:
        raise ValueError("classes is empty; name at least one candidate class.")
    if odd := [part for part in parts if not isinstance(part, Hashable)]:
        raise TypeError(
            f"A list of classes holds names, 'seen', 'unseen', 'all' and class tables, not a "
            f"{type(odd[0]).__name__}. A class table is a ClassEmbeddings, or a DataFrame indexed "
            f"by class."
        )
    described = set(known)
    groups = [part for part in GROUPS if part in parts and part not in described]
    if twice := [name for name, n in Counter(parts).items() if n > 1]:
        raise ValueError(f"classes names {first_few(twice)} more than once; name each once.")
    if not groups:
        return parts
    names: dict[Any, None] = {}  # in order, each once
    for part in parts:
        names |= dict.fromkeys(_group(part, seen, known) if part in groups else [as_python(part)])
    return list(names)


def _group(classes: str | None, seen: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    if classes is None or classes == "seen":
        return list(seen)
    if classes == "all":
        return list(known)
    if classes != "unseen":
        single = f"; for a single class write [{classes!r}]" if classes in set(known) else ""
        raise ValueError(
            f"classes must be 'seen', 'unseen', 'all', a list of names or a class table, not "
            f"{classes!r}{hint_of([classes], [*GROUPS, *known])}{single}."
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


def _is_one_of(part: Any, parts: Iterable[Any]) -> bool:
    return any(part is other for other in parts)


def _is_list(classes: Any) -> bool:
    return isinstance(classes, Iterable) and not isinstance(classes, str)


def _can_be_kept(classes: Any) -> bool:
    """Whether an argument always means the same; files and frames may change."""
    if isinstance(classes, ClassEmbeddings) or classes is None:
        return True
    if isinstance(classes, list | tuple | np.ndarray):
        return not is_class_table(classes) and all(
            isinstance(part, ClassEmbeddings) or not is_class_table(part) for part in classes
        )
    return isinstance(classes, str) and classes in GROUPS


def _means_the_same(known: Any, classes: Any) -> bool:
    if isinstance(classes, list | tuple | np.ndarray):
        if not isinstance(known, list) or len(known) != len(classes):
            return False
        parts = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
        return all(issubclass(kind, _COMPARED) for kind in set(map(type, parts))) and known == parts
    if isinstance(classes, str) or classes is None:
        return type(known) is type(classes) and known == classes
    return known is classes
