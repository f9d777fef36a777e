"""`Committee`: one answer from several models of different form that share images and classes.

Members differ in what they take a class for: a point that images are mapped to (`LatEm`, `ESZSL`),
a mixture of the seen classes (`class_kernel`), a place among the images (`EXEM`). So they err
differently, and the mean of their scores, each divided by its spread over the training images, is
right more often than any of them. They read one class table and scale images alike: a committee is
a model with one table like any other. `LateFusion` joins models with different tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from latem.core.messages import first_few
from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.core.validation import Composition, Interval, check_params, validated
from latem.models.affine_form import AffineForm
from latem.models.checks import check_is_model
from latem.models.class_view import Candidates
from latem.models.eszsl import ESZSL
from latem.models.exem import EXEM
from latem.models.files import unpack
from latem.models.latem import TUNED, LatEm
from latem.models.scaling import Scaling
from latem.models.score_terms import ScoreTerms
from latem.models.shared_images import SharedImages
from latem.models.table_model import TableClassifier
from latem.models.weights import checked_weights

if TYPE_CHECKING:
    from typing_extensions import Self

_SHARED = ("class_embeddings", "feature_scaling", "normalize_classes", "dtype")
_WIDTH = 0.7  # of the usual member's kernel
_OF_ALL = ("table.vectors", "scaling.shift", "scaling.scale")  # in files, the same for all members


def usual_members() -> list[tuple[str, Any]]:
    """Unfitted members that err differently: a ranked map, a kernel, exemplars by two distances."""
    tuned = {name: value for name, value in TUNED.items() if name != "feature_scaling"}
    return [
        ("ranking", LatEm(**tuned)),
        ("kernel", ESZSL(class_kernel=_WIDTH, center_classes=True, balance_classes=True)),
        ("exemplars", EXEM(center_classes=True)),
        ("whitened", EXEM(center_classes=True, neighbour="whitened")),
    ]


class Committee(TableClassifier, Composition):
    """Weighted mean of the standardised scores of several models with one class table.

    Parameters
    ----------
    class_embeddings : ClassEmbeddings, DataFrame, dict, (names, array), path or None
        Descriptions of the classes, seen and unseen; None means one-hot.
    members : list of (str, model), or None
        Models with different names, such as ``[("map", ESZSL()), ("exemplars", EXEM())]``; None
        means `usual_members`. They have no table of their own, and take over the committee's
        `feature_scaling`, `normalize_classes`, `dtype` and, unless they have one, `random_state`.
    weights : sequence of float or None
        One per member, not negative; None gives all the same weight.
    feature_scaling : {"zmax", "zscore", "l2", "l2-centered"} or None
    normalize_classes : bool
        Whether class vectors are divided by their length.
    n_threads : int or None
        Threads for scoring; results do not depend on it.
    dtype : {"float32", "float64"}
        Precision of the members and of scores.
    random_state : int, RandomState or None
        For members that draw random numbers and have no `random_state`.

    Attributes
    ----------
    models_ : list of models
        The fitted members.
    member_names_ : list of str
    weights_ : ndarray of shape (n_members,)
        Weights in use; they add up to one.
    scales_ : ndarray of shape (n_members,)
        Standard deviations of the members' scores over training images and seen classes, by which
        they are divided.
    classes_, class_table_, class_view_, scaler_
        As for every model.

    See Also
    --------
    latem.CommitteeCV : chooses members' parameters and weights on held-out classes.
    LateFusion : joins models with different tables.

    Examples
    --------
    >>> from latem import ESZSL, EXEM, Committee, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> members = [("map", ESZSL()), ("exemplars", EXEM())]
    >>> model = Committee(world.embeddings["att"], members).fit(*world.training())
    >>> model.score(*world.testing()) > 0.9
    True

    The usual members:

    >>> usual = Committee(world.embeddings["att"], random_state=0).fit(*world.training())
    >>> usual.member_names_
    ['ranking', 'kernel', 'exemplars', 'whitened']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = TableClassifier._parameter_constraints | {
        "members": [list, None],
        "weights": ["array-like", None],
        "random_state": [Interval(Integral, 0, None, closed="left"), "random_state"],
    }
    _learned = "models_"
    models_: list[Any]
    member_names_: list[str]
    weights_: np.ndarray
    scales_: np.ndarray

    def __init__(
        self,
        class_embeddings: Any = None,
        members: list[tuple[str, Any]] | None = None,
        *,
        weights: Sequence[float] | None = None,
        feature_scaling: Scaling | None = "l2-centered",
        normalize_classes: bool = True,
        n_threads: int | None = None,
        dtype: str = "float32",
        random_state: int | np.random.RandomState | None = None,
    ):
        self.class_embeddings = class_embeddings
        self.members = members
        self.weights = weights
        self.feature_scaling = feature_scaling
        self.normalize_classes = normalize_classes
        self.n_threads = n_threads
        self.dtype = dtype
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, and with `deep` those of the members as NAME__PARAMETER."""
        return self._get_params("members", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of members as NAME__PARAMETER."""
        self._set_params("members", **params)
        return self

    @validated
    def fit(self, X: Any, y: Any) -> Self:
        """Fit every member to the same images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        self._checked_members()
        X, codes = self._begin_anew(X, y)
        self.learn(SharedImages(X, codes, len(self.classes_), self.scaler_))
        return self

    def learn(self, images: SharedImages) -> None:
        """Fit every member, to images that others may learn from, too.

        Parameters
        ----------
        images : SharedImages
            The images that the committee was prepared for.
        """
        members = self._checked_members()
        weights = checked_weights(self.weights, len(members), "Committee")
        models = [self._member(model) for _, model in members]
        X, labels = images.X, self.classes_[images.codes]
        with single_threaded_blas():
            for model in models:
                if _learns_from_shared(model):
                    model.check_training_images(X, labels)
                    model.prepare(X, labels)
                    model.learn(images)
                else:
                    model.fit(X, labels)
        self.weights_ = weights
        self.scales_ = np.array([_spread(model, X) for model in models])
        self.member_names_ = [name for name, _ in members]
        self.models_ = models

    def unfitted_member(self, name: str) -> Any:
        """A member before it is fitted, with what it shares with the others.

        Parameters
        ----------
        name : str
        """
        return self._member(_named(name, self._checked_members()))

    def _member(self, model: Any) -> Any:
        known = model.get_params(deep=False)
        given = {name: getattr(self, name) for name in _SHARED}
        if known.get("random_state", 0) is None:
            given["random_state"] = self.random_state
        if "n_threads" in known:
            given["n_threads"] = self.n_threads
        member = clone(model).set_params(**given)
        member.records_training = False  # the committee does
        return member

    def _checked_members(self) -> list[tuple[str, Any]]:
        members = usual_members() if self.members is None else self.members
        for member in members:
            if not (isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], str)):
                raise TypeError(
                    f"Members of Committee must be pairs (name, model), not {member!r}."
                )
            name, model = member
            check_is_model(model, "Committee")
            if not isinstance(model, TableClassifier) or isinstance(model, Committee):
                raise TypeError(
                    f"Members of Committee are models with one class table, not "
                    f"{type(model).__name__} ({name!r}); LateFusion joins any models."
                )
            if model.class_embeddings is not None:
                raise ValueError(
                    f"Member {name!r} of Committee has a class table of its own; give the table to "
                    f"the committee, or join models with different tables by LateFusion."
                )
            check_params(model)
        names = [name for name, _ in members]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"Committee needs members with different names, but got {names}.")
        taken = [name for name in names if "__" in name or name in self.get_params(deep=False)]
        if taken:
            raise ValueError(
                f"Members of Committee cannot be called {first_few(taken)}: choose names without "
                f"'__' that are none of its parameters'."
            )
        return members

    def member(self, name: str) -> Any:
        """The fitted member of this name."""
        check_is_fitted(self)
        return _named(name, zip(self.member_names_, self.models_, strict=True))

    def member_scores(self, X: Any, classes: Any = None) -> np.ndarray:
        """Scores of each member, divided by their spread over the training images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to score; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_members, n_samples, n_classes)
        """
        check_is_fitted(self)
        X = self.check_images(X)
        table = self.class_view_.candidates(classes).table
        return np.stack(
            [
                model.decision_function(X, table) / scale
                for model, scale in zip(self.models_, self.scales_, strict=True)
            ]
        )

    def _factors(self) -> np.ndarray:
        """What the scores of each member are multiplied by."""
        return (self.weights_ / self.scales_).astype(self.dtype_)

    def _taking_part(self, chosen: Candidates) -> list[tuple[Any, Any, Candidates]]:
        """Factor, model and candidates of every member whose weight is not zero."""
        return [
            (factor, model, model.class_view_.candidates(chosen.table))
            for factor, model in zip(self._factors(), self.models_, strict=True)
            if factor
        ]

    def _block_scorer(self, chosen: Candidates) -> Callable[[np.ndarray], np.ndarray]:
        members = [
            (factor, model.block_scorer(candidates))
            for factor, model, candidates in self._taking_part(chosen)
        ]

        def scores(X: np.ndarray) -> np.ndarray:
            return sum(factor * score(X) for factor, score in members)

        return scores

    def affine_form(self, chosen: Candidates) -> AffineForm | None:
        """The scores as pieces that are linear in the image; None if a member has none."""
        members = self._taking_part(chosen)
        forms = [model.affine_form(candidates) for _, model, candidates in members]
        return AffineForm.sum_of(forms, [factor for factor, _, _ in members])

    def score_terms(self, features: np.ndarray, chosen: Candidates) -> ScoreTerms:
        """What the scores of an image are sums of, see `TableClassifier.score_terms`.

        Terms of the same name, such as a trait that several members know, are added up.
        """
        places: dict[str, int] = {}
        found = []
        for factor, model, candidates in self._taking_part(chosen):
            columns, terms, slopes, _ = model.score_terms(features, candidates)
            where = np.array([places.setdefault(column, len(places)) for column in columns])
            found.append((where, factor * np.stack([terms, slopes])))
        total = np.zeros((len(places), len(chosen), 2))
        for where, part in found:
            np.add.at(total, where, part.T)
        return ScoreTerms(list(places), total[..., 0].T, total[..., 1].T)

    def with_classes(self, table: Any) -> Any:
        """The same fitted committee, its members knowing further classes by their descriptions.

        Parameters
        ----------
        table : ClassEmbeddings, DataFrame, dict, (names, array) or path
            New classes, with the same columns as the committee's own table.

        Returns
        -------
        Committee
            The learned arrays are shared, the committee itself is left as it is.
        """
        check_is_fitted(self)
        table = self.class_table_.matching(table)
        other = super().with_classes(table)
        other.models_ = [model.with_classes(table) for model in self.models_]
        return other

    def twin(self, seed: int) -> Any:
        """Unfitted committee of the members' twins, with the weights in use."""
        fresh = super().twin(seed)
        twins = [
            model.twin(seed).set_params(class_embeddings=None, n_threads=None)
            for model in self.models_
        ]
        return fresh.set_params(
            members=list(zip(self.member_names_, twins, strict=True)),
            weights=self.weights_.tolist(),
        )

    # -- files --------------------------------------------------------------------------------

    def _stored_params(self) -> dict[str, Any]:
        params = super()._stored_params()
        del params["members"]
        return params

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        tensors: dict[str, np.ndarray] = {"weights": self.weights_, "scales": self.scales_}
        members = []
        for i, (name, model) in enumerate(zip(self.member_names_, self.models_, strict=True)):
            arrays, meta = model.pack()
            tensors |= {f"{i}/{key}": a for key, a in arrays.items() if key not in _OF_ALL}
            members.append({"name": name, "content": meta})
        return tensors, {"members": members}

    @classmethod
    def _from_params(cls, params: dict[str, Any]) -> Committee:
        return cls(members=[], **params)

    def _restore(self, tensors: dict[str, np.ndarray], record: dict[str, Any]) -> None:
        shared = {key: tensors[key] for key in _OF_ALL}
        models = []
        for i, member in enumerate(record["members"]):
            start = f"{i}/"
            part = {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}
            model = unpack(part | shared, member["content"])
            if not isinstance(model, TableClassifier) or not np.array_equal(
                model.classes_, self.classes_
            ):
                raise FileFormatError(f"member {member['name']!r} does not fit the others")
            models.append(model)
        names = [str(member["name"]) for member in record["members"]]
        for name in ("weights", "scales"):
            found = tensors[name]
            whole = found.shape == (len(models),) and found.dtype == np.float64
            if not whole or not np.isfinite(found).all():
                raise FileFormatError(f"{name} of shape {found.shape} and type {found.dtype}")
        if not models or not (tensors["scales"] > 0).all():
            raise FileFormatError("no members, or scales that are not above zero")
        self.weights_ = checked_weights(tensors["weights"], len(models), "Committee")
        self.scales_ = tensors["scales"]
        self.members = [
            (name, clone(model).set_params(class_embeddings=None))
            for name, model in zip(names, models, strict=True)
        ]
        self.member_names_ = names
        self.models_ = models


def _named(name: str, members: Iterable[tuple[str, Any]]) -> Any:
    known = dict(members)
    if name not in known:
        raise ValueError(f"Committee has no member {name!r}; there are {', '.join(known)}.")
    return known[name]


def _learns_from_shared(model: Any) -> bool:
    """Whether `learn` is all of a model's fit; a subclass with a fit of its own does more."""
    kinds = type(model).__mro__
    first = {
        name: next((i for i, kind in enumerate(kinds) if name in vars(kind)), len(kinds))
        for name in ("learn", "fit")
    }
    return first["learn"] <= first["fit"]


def _spread(model: Any, X: np.ndarray) -> float:
    """Standard deviation of a model's scores of its training images, or 1 if all are alike."""
    scores = model.decision_function(X, model.classes_)
    return float(np.std(scores, dtype=np.float64)) or 1.0
