"""What searches on held-out classes share: candidates, folds, the final fit, files.

Candidates are trained side by side in threads, over one copy of each fold's features, or wherever
joblib is told to run them (`latem.core.parallel`).
"""

from __future__ import annotations

import copy
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from latem.core.parallel import run_tasks
from latem.core.progress import progress_bar
from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.core.validation import check_params, validated
from latem.models.base import ZeroShotClassifier, forget_learned, plain_params
from latem.models.block_images import ReadBlocks, read_blocks
from latem.models.files import unpack
from latem.models.folds import class_folds, image_folds
from latem.models.from_sums import FromSums
from latem.models.grid_edges import Edge, allowed_edges, as_dict, edges_in_list, warn_of_edges
from latem.models.lazy import on_blocks
from latem.models.ranking import RankingModel
from latem.models.retrieval import RowScorer
from latem.models.scoring import Keep
from latem.models.table_model import TableClassifier
from latem.selection.folds import FoldData, fold_scores, list_tried
from latem.selection.results import Tried, as_arrays, as_plain, as_tried, from_plain

if TYPE_CHECKING:
    from typing_extensions import Self

_OWN = "search/"  # before the names of a search's own arrays in its file
_log = logging.getLogger(__name__)


class Search(ZeroShotClassifier):
    """Base of `HeldOutSearch`, `LatEmCV` and `CommitteeCV`."""

    _learned = "best_estimator_"
    cv: int | Sequence[Any]
    patience: int | None
    n_threads: int | None
    verbose: bool
    random_state: Any
    best_estimator_: Any
    best_params_: dict[str, Any]
    best_score_: float
    best_index_: int
    cv_results_: dict[str, Any]
    grid_edges_: dict[str, str]

    @abstractmethod
    def unfitted_model(self) -> TableClassifier:
        """Unfitted model whose parameters are to be chosen."""

    @abstractmethod
    def tried_values(self) -> Mapping[str, Sequence[Any]]:
        """Values to try by parameter."""

    def _n_first_steps(self, folds: Sequence[FoldData]) -> int:
        """How many steps of the progress bar `_choose_first` takes."""
        return 0

    def _choose_first(
        self, model: Any, folds: Sequence[FoldData], done: Callable[[], None]
    ) -> tuple[dict[str, Any], list[Edge]]:
        """Parameters that are chosen before the grid is tried, on the same folds."""
        return {}, []

    def _is_asked_for(self, name: str) -> bool:
        """Whether a value at the end of this parameter's grid is worth a warning."""
        return True

    def words(self, params: Mapping[str, Any]) -> str:
        """Chosen parameters for people."""
        return ", ".join(f"{name} {value}" for name, value in params.items())

    @abstractmethod
    def _take_classes(self, best: TableClassifier) -> None:
        """Describe classes as this model does, also for clones."""

    @validated
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the parameters on held-out classes, then fit all images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images that come in blocks
            The latter (see `latem.core.blocks`) for models that take them: parameters are then
            chosen on a sample, and the chosen model is fitted to all.
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        forget_learned(self)
        model = self.unfitted_model()
        grid = self._checked_grid()
        if self.encoder_ is not None:
            model.encoder_ = self.encoder_
        model.records_training &= self.records_training
        read = self._read(model, X, y)
        if read is not None:
            model.note_encoder(X, len(read.sums.mean))
            X, y = read.drawn()
        X, y = model.check_training_images(X, y)
        model.check_classes(y)
        folds = self._folds(model, X, y)
        # Epochs of one training are tried together, so they are not part of a candidate.
        epochs = grid.pop("n_epochs", None) if isinstance(model, RankingModel) else None
        candidates = list(ParameterGrid(grid))
        for params in [*candidates, *({"n_epochs": n} for n in epochs or ())]:
            check_params(clone(model).set_params(**params))
        n_steps = len(candidates) * len(folds) + 1 + self._n_first_steps(folds)
        with (
            progress_bar(self.verbose, "choosing", total=n_steps, unit="trainings") as done,
            single_threaded_blas(),
        ):
            first, edges = self._choose_first(model, folds, done)
            model.set_params(**first)
            scores = self._try_all(model, candidates, epochs, folds, done)
            tried = list_tried(candidates, epochs, scores, len(folds))
            best = max(tried, key=lambda one: one.merit)  # the first of equals
            self.cv_results_ = as_arrays(tried)
            self.best_index_ = tried.index(best)
            self.best_params_ = {**first, **best.params}
            self.best_score_ = best.mean
            for one in tried:
                _log.debug("%s: %.4f on held-out classes", one.params, one.mean)
            _log.info("chose %s (%.4f on held-out classes)", self.best_params_, best.mean)
            if folds:
                edges += edges_in_list(
                    [one.params for one in tried], [one.merit for one in tried], self.best_index_
                )
            edges = allowed_edges(model, edges)
            self.grid_edges_ = as_dict(edges)
            if read is not None:
                X, y = read, None
            self.best_estimator_ = self._final_fit(model, X, y)
            done()
        self._expose_best()
        asked = [edge for edge in edges if self._is_asked_for(edge.name)]
        warn_of_edges(type(model).__name__, asked)
        return self

    def _read(self, model: TableClassifier, X: Any, y: Any) -> ReadBlocks | None:
        """Images that come in blocks, passed over; None if they are an array."""
        blocks = model.blocks_of(X, y) if isinstance(model, FromSums) else None
        if blocks is None or isinstance(blocks, ReadBlocks):
            return blocks
        hashed = model.records_training
        read = read_blocks(blocks, model.feature_scaling, sample=True, hashed=hashed)
        _log.info("choosing on %d of %d images", len(read.drawn()[0]), read.sums.n)
        return read

    def _checked_grid(self) -> dict[str, list[Any]]:
        grid = {name: list(values) for name, values in self.tried_values().items()}
        empty = [name for name, values in grid.items() if not values]
        if not grid or empty:
            what = ", ".join(empty) or "anything"
            raise ValueError(f"{type(self).__name__} has no values to try for {what}.")
        return grid

    def _folds(self, model: TableClassifier, X: np.ndarray, y: np.ndarray) -> list[FoldData]:
        if model.class_embeddings is None:
            folds = image_folds(y, self.cv, self.random_state)
        else:
            folds = class_folds(y, self.cv, self.random_state, type(self).__name__)
        return [
            FoldData(X[~fold.out], y[~fold.out], X[fold.out], y[fold.out], fold.candidates)
            for fold in folds
        ]

    def _try_all(
        self,
        model: TableClassifier,
        candidates: list[dict[str, Any]],
        epochs: list[int] | None,
        folds: list[FoldData],
        done: Callable[[], None],
    ) -> list[list[float]]:
        """Scores of every candidate on every fold, fold by fold; one per number of epochs."""
        pieces = [(params, i) for params in candidates for i in range(len(folds))]
        shared = (model, folds, epochs, self.patience)
        tasks = run_tasks(_try, pieces, shared=shared, n_threads=self.n_threads, done=done)
        return list(tasks)

    def _final_fit(self, model: TableClassifier, X: Any, y: Any) -> Any:
        """The chosen model, fitted to all images: a plain array, or blocks that have been read."""
        best: Any = clone(model).set_params(**self.best_params_).fit(X, y)
        if hasattr(model, "feature_names_in_"):
            best.feature_names_in_ = model.feature_names_in_
        return best

    def _expose_best(self) -> None:
        """Show what scikit-learn and users expect to find on a fitted model."""
        best = self.best_estimator_
        self.classes_ = best.classes_
        self.n_features_in_ = best.n_features_in_
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_
        self.encoder_ = best.encoder_

    @property
    def class_table_(self) -> Any:
        """All classes that can be named."""
        check_is_fitted(self)
        return self.best_estimator_.class_table_

    def with_classes(self, table: Any) -> Any:
        """The same fitted search, its model knowing further classes by their descriptions.

        Parameters
        ----------
        table : ClassEmbeddings, DataFrame, dict, (names, array) or path
            New classes, with the same columns as the model's own table.

        Returns
        -------
        a search of the same kind
            The learned arrays are shared, the search itself is left as it is.
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.best_estimator_ = self.best_estimator_.with_classes(table)
        other._take_classes(other.best_estimator_)
        return other

    @on_blocks
    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Compatibility of images and classes, by the chosen model; see there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes : None, "seen", "unseen", "all", list of names, class table, or a list of these

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X, classes)

    def row_scorer(self, X: Any, classes: Any) -> RowScorer:
        """What scores some rows of many images, see `latem.models.retrieval`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to score; see `decision_function`.
        """
        check_is_fitted(self)
        return self.best_estimator_.row_scorer(X, classes)

    def each_scored(self, X: Any, classes: Any, keep: Keep) -> None:
        """Call `keep(rows, parts)` for blocks of images, by the chosen model."""
        check_is_fitted(self)
        self.best_estimator_.each_scored(X, classes, keep)

    def settled(self, classes: Any) -> Any:
        """A `classes` argument that means the same classes every time."""
        check_is_fitted(self)
        return self.best_estimator_.settled(classes)

    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores."""
        check_is_fitted(self)
        return self.best_estimator_.candidate_names(classes)

    def _best(self, X: Any, k: int, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        return self.best_estimator_.top_k(X, k, classes, return_scores=True)

    def training_rows(self) -> np.ndarray | None:
        """Hashes of the images that the chosen model has learned from."""
        return self.best_estimator_.training_rows() if hasattr(self, "best_estimator_") else None

    def twin(self, seed: int) -> Any:
        """Unfitted model with the parameters that were chosen."""
        check_is_fitted(self)
        return self.best_estimator_.twin(seed)

    # -- files --------------------------------------------------------------------------------

    def _stored_params(self) -> dict[str, Any]:
        """Parameters for the model file, as plain data."""
        params = plain_params(self.get_params(deep=False))
        return {**params, "n_threads": None}  # a matter of the machine, not of the model

    def pack(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything a file of this search holds: arrays, and plain data."""
        tensors, inner = self.best_estimator_.pack()
        arrays, known = self.pack_knowledge()
        tensors |= {f"{_OWN}{name}": array for name, array in arrays.items()}
        return tensors, {
            "model": type(self).__name__,
            "params": self._stored_params(),
            "inner": inner,
            "best_score": self.best_score_,
            "best_params": plain_params(self.best_params_),
            "grid_edges": self.grid_edges_,
            "cv_results": as_plain(as_tried(self.cv_results_), plain_params),
            **known,
        }

    @classmethod
    def unpack(cls, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> Any:
        """Search from what `pack` gave."""
        best = unpack(tensors, meta["inner"])
        if not isinstance(best, TableClassifier):
            raise FileFormatError("the chosen model is not of a kind that can be chosen")
        search = cls._rebuild(dict(meta["params"]), best)
        check_params(search)
        search.best_estimator_ = best
        search.best_params_ = cls._read_best_params(dict(meta["best_params"]))
        search.best_score_ = float(meta["best_score"])
        tried = from_plain(meta["cv_results"])
        search.cv_results_ = as_arrays(tried)
        search.best_index_ = cls._best_of(tried)
        search.grid_edges_ = dict(meta.get("grid_edges", {}))  # earlier files have none
        search._expose_best()
        own = {k.removeprefix(_OWN): v for k, v in tensors.items() if k.startswith(_OWN)}
        search.unpack_knowledge(own, meta)
        return search

    @classmethod
    def _best_of(cls, tried: Sequence[Tried]) -> int:
        """Place of the best among what was tried; of equals the first."""
        return max(range(len(tried)), key=lambda i: tried[i].merit, default=0)

    @classmethod
    def _read_best_params(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Chosen parameters of a file under the names they have now."""
        return params

    @classmethod
    @abstractmethod
    def _rebuild(cls, params: dict[str, Any], best: TableClassifier) -> Any:
        """Unfitted search from the parameters of a file and its fitted model."""


def _try(
    piece: tuple[dict[str, Any], int],
    model: TableClassifier,
    folds: Sequence[FoldData],
    epochs: list[int] | None,
    patience: int | None,
) -> list[float]:
    """Scores of one candidate on one fold."""
    params, place = piece
    candidate: Any = clone(model).set_params(**params, n_threads=1)
    candidate.records_training = False
    return fold_scores(candidate, epochs, folds[place], patience)
