"""Late fusion (*cmb*): one answer from several models that describe classes differently.

The paper adds up the compatibility scores of models trained on different class embeddings: in Table
3, which follows the SJE paper, F = Σ_k α_k F_k with Σ_k α_k = 1 and α chosen on held-out classes
(`LateFusion.choose_weights`); the appendix words it as their average, which is what a fusion
without weights does. Early fusion (*cnc*) is `ClassEmbeddings.concat`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_X_y, column_or_1d

from latem.core.validation import Composition, check_params, validated
from latem.models.affine_form import AffineForm
from latem.models.base import ZeroShotClassifier, forget_learned
from latem.models.checks import check_is_model
from latem.models.class_view import is_class_table, meant_names, tables_among
from latem.models.files import unpack
from latem.models.lazy import on_blocks
from latem.models.retrieval import Rows, RowScorer
from latem.models.scaling import FeatureScaler
from latem.models.scoring import BestSoFar, Parts
from latem.models.training_record import joint_rows
from latem.models.weights import HeldOutScores, best_weights, checked_weights

if TYPE_CHECKING:
    from typing_extensions import Self


class LateFusion(ZeroShotClassifier, Composition):
    """Weighted mean of the scores of several models.

    Parameters
    ----------
    members : list of (str, model)
        Models with different names, such as ``[("att", LatEm(att)), ("glo", LatEm(glo))]``.
    weights : sequence of float or None
        One per member, not negative; None gives all the same weight. `choose_weights` sets them.
    standardize : bool
        Whether to divide each member's scores by their standard deviation over the training
        images and seen classes, so that members on different scales count equally.
    prefit : bool
        Whether the members have been fitted already; `fit` then only checks them.

    Attributes
    ----------
    models_ : list of models
        The fitted members.
    weights_ : ndarray of shape (n_members,)
        Weights in use; they add up to one.
    scales_ : ndarray of shape (n_members,)
        Standard deviations the scores are divided by; ones unless `standardize`.
    classes_ : ndarray of shape (n_seen,)

    Examples
    --------
    >>> from latem import LatEm, LateFusion, load_emoji
    >>> emoji = load_emoji()
    >>> members = [(name, LatEm(emoji.embeddings[name], n_epochs=3, random_state=0))
    ...            for name in ("text", "glo")]
    >>> X, y = emoji.training()
    >>> fusion = LateFusion(members).fit(X, y)
    >>> fusion.predict(X[:2], classes="unseen").shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "members": [list],
        "weights": ["array-like", None],
        "standardize": ["boolean"],
        "prefit": ["boolean"],
    }
    _learned = "models_"
    models_: list[Any]
    weights_: np.ndarray
    scales_: np.ndarray

    def __init__(
        self,
        members: list[tuple[str, ZeroShotClassifier]],
        *,
        weights: Sequence[float] | None = None,
        standardize: bool = False,
        prefit: bool = False,
    ):
        self.members = members
        self.weights = weights
        self.standardize = standardize
        self.prefit = prefit

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Fit every member to the same images (unless `prefit`).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        for member in self.members:
            if not (isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], str)):
                raise TypeError(
                    f"Members of LateFusion must be pairs (name, model), not {member!r}."
                )
            check_is_model(member[1], "LateFusion")
        names = [name for name, _ in self.members]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"LateFusion needs members with different names, but got {names}.")
        forget_learned(self)
        weights = self._check_weights()
        if self.prefit:
            models = [model for _, model in self.members]
            for model in models:
                check_is_fitted(model)
            self._check_prefit(X, y, models[0])
        else:
            models = [clone(model).fit(X, y) for _, model in self.members]
        first = models[0]
        for name, model in zip(names, models, strict=True):
            if model.classes_.tolist() != first.classes_.tolist():
                raise ValueError(f"Member {name!r} has not seen the same classes as {names[0]!r}.")
            if model.n_features_in_ != first.n_features_in_:
                raise ValueError(f"Member {name!r} was fitted to features of another width.")
        self.scales_ = np.ones(len(models))
        if self.standardize:
            scores = [model.decision_function(X, model.classes_) for model in models]
            self.scales_ = np.array([float(np.std(s, dtype=np.float64)) or 1.0 for s in scores])
        self.weights_ = weights
        self.classes_ = first.classes_
        self.n_features_in_ = first.n_features_in_
        self.note_encoder(X, self.n_features_in_)
        if self.encoder_ is None and first.encoder_ is not None:
            self.encoder_ = first.encoder_
        self.models_ = models
        return self

    def _check_prefit(self, X: Any, y: Any, model: Any) -> None:
        """Images and labels that fitted members could have been fitted to."""
        X, y = check_X_y(X, y, dtype="numeric")
        if X.shape[1] != model.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but the members were fitted to "
                f"{model.n_features_in_}."
            )
        odd = np.setdiff1d(y, model.classes_)
        if len(odd):
            raise ValueError(f"The members have not seen {odd[:5].tolist()}, which are in y.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and with `deep` those of the members as NAME__PARAMETER."""
        return self._get_params("members", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of members as NAME__PARAMETER."""
        self._set_params("members", **params)
        return self

    def choose_weights(self, X: Any, y: Any, *, steps: int = 10, prior: float = 0.0) -> Self:
        """Choose the weights on held-out classes, by mean per-class accuracy.

        All weights that are multiples of ``1 / steps`` and add up to one are tried; of equally
        good ones the most even is kept. They become the parameter `weights`: clones and further
        fits go by them, such as a fit to all seen classes, the held-out ones included. Undo it with
        ``set_params(weights=None)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Images of classes that no member was fitted to.
        y : array-like of shape (n_samples,)
        steps : int
        prior : float
            How many held-out classes equal weights count for: with n of them, the best weights are
            drawn towards equal ones by prior / (n + prior). Worth trying with few classes.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        y = column_or_1d(y)
        classes = np.unique(y)
        seen = np.intersect1d(classes, self.classes_)
        if len(seen):
            raise ValueError(
                f"Weights must be chosen on held-out classes, but the members have seen "
                f"{seen[:5].tolist()}."
            )
        if len(classes) < 2:
            raise ValueError("Weights must be chosen on at least two held-out classes.")
        scores = np.stack(self._member_scores(X, classes))  # (n_members, n_samples, n_classes)
        found = [HeldOutScores(scores, y, classes)]
        self.weights = best_weights(found, steps=steps, prior=prior).tolist()
        self.weights_ = self._check_weights()
        self.forget_measured()
        return self

    @on_blocks
    def decision_function(self, X: Any, classes: Any = None) -> np.ndarray:
        """Weighted mean of the members' scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes : None, "seen", "unseen", "all", or list of names and these
            As for any model, but not a new table: the members describe classes differently.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            With `classes=None` and two seen classes, their difference (scikit-learn's rule).
        """
        check_is_fitted(self)
        names = self.candidate_names(classes)
        scores = np.tensordot(self.weights_, np.stack(self._member_scores(X, names)), axes=1)
        if classes is None and len(names) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def row_scorer(self, X: Any, classes: Any) -> RowScorer:
        """What scores some rows of many images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to score; see `decision_function`.
        """
        check_is_fitted(self)
        names = self.candidate_names(classes)
        scorers = [model.row_scorer(X, names) for model in self.models_]

        def score(rows: Rows) -> np.ndarray:
            scores = [
                scorer.score(rows) / scale
                for scorer, scale in zip(scorers, self.scales_, strict=True)
            ]
            return np.tensordot(self.weights_, np.stack(scores), axes=1)

        return RowScorer(scorers[0].n_rows, len(names), score, scorers[0].check)

    def linear_pieces(self, classes: Any) -> tuple[FeatureScaler, AffineForm] | None:
        """How images are scaled, and scores as linear pieces; None if members differ in scaling.

        Parameters
        ----------
        classes
            Which classes; see `decision_function`.
        """
        names = self.candidate_names(classes)
        found = [model.linear_pieces(names) for model in self.models_]
        pieces = [one for one in found if one is not None]
        if len(pieces) < len(found) or any(not one[0].same(pieces[0][0]) for one in pieces):
            return None
        form = AffineForm.sum_of([one[1] for one in pieces], self.weights_ / self.scales_)
        return None if form is None else (pieces[0][0], form)

    def _best(self, X: Any, k: int, classes: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        names = self.candidate_names(classes)
        self._check_k(k, len(names))
        places, scores = np.empty((len(X), k), np.intp), np.empty((len(X), k))

        def keep(rows: slice, parts: Parts) -> None:
            best = BestSoFar(k)
            for columns, block in parts:
                best.add(columns.start, block)
            places[rows], scores[rows] = best.places, best.scores

        self.each_scored(X, names, keep)
        return names[places], scores

    def _member_scores(self, X: Any, names: np.ndarray) -> list[np.ndarray]:
        return [
            model.decision_function(X, names) / scale
            for model, scale in zip(self.models_, self.scales_, strict=True)
        ]

    def with_classes(self, table: Any) -> Any:
        """Not for fusions: each member describes classes by a table of its own.

        Raises
        ------
        TypeError
            Always; it says what to do instead.
        """
        raise TypeError(
            "The members of LateFusion describe classes by different tables: call with_classes on "
            "each fitted member, and fuse those with LateFusion(members, prefit=True)."
        )

    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates; those every member describes, for "all" and "unseen"."""
        check_is_fitted(self)
        if classes is None:
            return self.classes_
        if isinstance(classes, Iterator):
            classes = list(classes)
        described = [model.candidate_names("all").tolist() for model in self.models_]
        common = set(described[0]).intersection(*described[1:])
        known = [name for name in described[0] if name in common]
        in_a_list = isinstance(classes, Iterable) and not isinstance(classes, str | Mapping)
        if is_class_table(classes) or (in_a_list and tables_among(classes, known)):
            raise TypeError(
                "LateFusion takes classes=None, 'seen', 'unseen', 'all' or a list of names and "
                "these: its members describe classes by different tables. Call with_classes on "
                "each fitted member, and fuse those with LateFusion(members, prefit=True)."
            )
        return np.array(meant_names(classes, self.classes_.tolist(), known))

    def twin(self, seed: int) -> LateFusion:
        """Unfitted fusion of the members' twins, with the weights in use."""
        check_is_fitted(self)
        names = [name for name, _ in self.members]
        members = [(n, model.twin(seed)) for n, model in zip(names, self.models_, strict=True)]
        twin = LateFusion(members, weights=self.weights_.tolist(), standardize=self.standardize)
        twin.encoder_ = self.encoder_
        return twin

    def training_rows(self) -> np.ndarray | None:
        """Hashes of the images that any member has learned from; None if one does not know."""
        return joint_rows(self.models_) if hasattr(self, "models_") else None

    def _check_weights(self) -> np.ndarray:
        return checked_weights(self.weights, len(self.members), "LateFusion")

    # -- files --------------------------------------------------------------------------------

    def pack(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Everything a file of this fusion holds: arrays, and plain data."""
        tensors: dict[str, np.ndarray] = {"weights": self.weights_, "scales": self.scales_}
        members: list[dict[str, Any]] = []
        for (name, _), model in zip(self.members, self.models_, strict=True):
            arrays, meta = model.pack()
            tensors |= {f"{len(members)}/{key}": array for key, array in arrays.items()}
            members.append({"name": name, "content": meta})
        weights = None if self.weights is None else np.asarray(self.weights).tolist()
        params = {"standardize": self.standardize, "prefit": self.prefit, "weights": weights}
        meta = {"model": "LateFusion", "params": params, "members": members}
        arrays, known = self.pack_knowledge()
        return tensors | arrays, meta | known

    @classmethod
    def unpack(cls, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> LateFusion:
        """Fusion from what `pack` gave."""
        members: list[tuple[str, Any]] = []
        for i, member in enumerate(meta["members"]):
            start = f"{i}/"
            part = {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}
            members.append((member["name"], unpack(part, member["content"])))
        fusion = cls(members, **meta["params"])
        check_params(fusion)
        given = fusion._check_weights()
        for name in ("weights", "scales"):
            found = tensors[name]
            whole = found.shape == given.shape and found.dtype == np.float64
            if not whole or not np.isfinite(found).all():
                raise ValueError(
                    f"{name} of shape {found.shape} and type {found.dtype}, not {given.shape} of "
                    f"finite float64"
                )
        if not np.allclose(given, tensors["weights"]):  # chosen, in a file of earlier versions
            fusion.weights = tensors["weights"].tolist()
        fusion.weights_, fusion.scales_ = tensors["weights"], tensors["scales"]
        fusion.models_ = [model for _, model in members]
        fusion.classes_ = fusion.models_[0].classes_
        fusion.n_features_in_ = fusion.models_[0].n_features_in_
        fusion.unpack_knowledge(tensors, meta)
        return fusion
