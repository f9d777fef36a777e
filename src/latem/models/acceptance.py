"""What a model takes for one of the candidates, and when it says "none of these".

`latem train` and `latem.train` choose it on held-out classes (`latem.selection.calibrate_answers`);
it is kept in the model and its file. See `latem.metrics.open_set` for the two measures behind it.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from latem.core.storage import FileFormatError
from latem.core.threads import single_threaded_blas
from latem.metrics.calibration import LogSum, check_rate
from latem.metrics.open_set import RATES, Kinship, Outsiders, rival_energy
from latem.models.scoring import Keep, Parts

_ARRAYS = ("centre", "means")
_NUMBERS = ("false_accept_rate", "temperature", "seen_penalty", "slope", "offset")
_TABLES = ("rivalled", "alone")
FEW_RIVALS = 0.5  # of the seen classes; with fewer, candidates stand alone


@dataclass(frozen=True, eq=False)
class Acceptance:
    """When a picture counts as one of the candidates.

    Attributes
    ----------
    false_accept_rate : float
        Share of outsiders that may be named.
    temperature : float
        Of the energies.
    seen_penalty : float
        What is subtracted from the scores of seen classes.
    slope, offset : float
        Of the logistic function that makes probabilities of single classes; see
        `predict_proba_each`.
    kinship : Kinship
    rivalled : Outsiders
        Where seen classes stand beside the candidates.
    alone : Outsiders
        Where most of the seen classes are candidates themselves.
    """

    false_accept_rate: float
    temperature: float
    seen_penalty: float
    slope: float
    offset: float
    kinship: Kinship
    rivalled: Outsiders
    alone: Outsiders

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything in it that is an array, by name."""
        found = {name: getattr(self.kinship, name) for name in _ARRAYS}
        for key in _TABLES:
            table = getattr(self, key)
            found |= {
                f"{key}.{name}": getattr(table, name)
                for name in ("sizes", "thresholds", "coverage")
            }
        return found

    def facts(self) -> dict[str, float]:
        """Everything else in it, as plain data."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {**numbers, "kinship": self.kinship.threshold}

    @classmethod
    def rebuilt(cls, arrays: dict[str, np.ndarray], facts: dict[str, Any], width: int) -> Any:
        """From `arrays` and `facts`; `width` is the number of features."""
        for name, array in arrays.items():
            if array.dtype.kind != "f" or not np.isfinite(array).all():
                raise FileFormatError(f"acceptance.{name} is not made of finite numbers")
        numbers = {name: float(facts[name]) for name in facts}
        if not np.isfinite(list(numbers.values())).all() or numbers["temperature"] <= 0:
            raise FileFormatError("its acceptance holds impossible numbers")
        check_rate(numbers["false_accept_rate"])
        kinship = Kinship(arrays["centre"], arrays["means"], numbers["kinship"])
        if kinship.centre.shape != (width,) or kinship.means.shape[1:] != (width,):
            raise FileFormatError("its acceptance belongs to features of another width")
        rivalled, alone = (_table(arrays, key) for key in _TABLES)
        rest: dict[str, Any] = {key: numbers[key] for key in _NUMBERS}
        return cls(kinship=kinship, rivalled=rivalled, alone=alone, **rest)


def _table(arrays: dict[str, np.ndarray], key: str) -> Outsiders:
    sizes, thresholds, coverage = (
        arrays[f"{key}.{name}"] for name in ("sizes", "thresholds", "coverage")
    )
    shape = (len(sizes), len(RATES))
    rising = sizes.ndim == 1 and len(sizes) and sizes[0] >= 1 and (np.diff(sizes) > 0).all()
    if not rising or thresholds.shape != shape or coverage.shape != shape:
        raise FileFormatError(f"acceptance.{key} is not a table by numbers of candidates")
    return Outsiders(sizes, thresholds, coverage)


def ahead_of_rivals(
    scores: np.ndarray, of_seen: np.ndarray, places: list[int | None], temperature: float
) -> np.ndarray:
    """By how much each class is ahead of the energy of all seen classes but itself.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
    of_seen : ndarray of shape (n_samples, n_seen)
    places : list
        Where each of the classes stands among the seen ones, or None.
    temperature : float

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        In units of the temperature.
    """
    total = rival_energy(of_seen, temperature)
    ahead = np.asarray(scores, np.float64) / temperature - total[:, None]
    for column, place in enumerate(places):
        if place is not None:
            others = np.delete(of_seen, place, axis=1)
            ahead[:, column] += total - rival_energy(others, temperature)
    return ahead


def _place(name: Any, seen: np.ndarray) -> int | None:
    found = np.flatnonzero(seen == name)
    return int(found[0]) if len(found) else None


@dataclass(frozen=True, eq=False)
class Beside:
    """What images are compared with beside some candidates.

    Attributes
    ----------
    outsiders : Outsiders
        How pictures of none of them look.
    rivals : list
        The seen classes beside them; none where nearly all of them are candidates.
    seen : ndarray of bool
        Which of the candidates are seen classes.
    """

    outsiders: Outsiders
    rivals: list[Any]
    seen: np.ndarray


class AcceptanceMixin(metaclass=ABCMeta):
    """How strange a picture is to the candidates.

    Attributes
    ----------
    acceptance_ : Acceptance
        Only if it was chosen, as training by `latem.train` or `latem train` does.
    """

    classes_: np.ndarray
    n_features_in_: int
    acceptance_: Acceptance

    @abstractmethod
    def class_scores(self, X: Any, classes: Any = None) -> np.ndarray:
        """Scores with a column for every candidate."""

    @abstractmethod
    def each_scored(
        self,
        X: Any,
        classes: Any,
        keep: Keep,
    ) -> None:
        """Call `keep(rows, parts)` for blocks of images, with scores in parts of the classes."""

    @abstractmethod
    def candidate_names(self, classes: Any = None) -> np.ndarray:
        """Names of the candidates, in the order of the columns of scores."""

    def strangeness(self, X: Any, classes: Any = None) -> np.ndarray:
        """Share of outsiders that look at least as much like one of the candidates.

        An outsider is a picture of none of the candidates. An image of small strangeness is
        hardly one: answers are given where it is at most the chosen false-accept rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes may be the answer; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Between 0.001 and 1; 1 also for images of quite another kind than those learned from.
        """
        self._known_acceptance()
        return self.strangeness_of(X, classes, self.class_scores(X, classes))

    def _known_acceptance(self) -> Acceptance:
        check_is_fitted(self)
        if not hasattr(self, "acceptance_"):
            raise ValueError(
                f"{type(self).__name__} does not know what outsiders look like: train it with "
                f"latem.train, or call latem.calibrate_answers."
            )
        return self.acceptance_

    def strangeness_of(
        self, X: Any, classes: Any, scores: np.ndarray, beside: Beside | None = None
    ) -> np.ndarray:
        """The same where the candidates' scores are known already, and perhaps `beside` as well."""
        beside = self.beside(classes) if beside is None else beside
        inside = LogSum()
        inside.add(self.energies(scores, beside.seen))
        rivals = self.energies_of_rivals(X, beside)
        ahead = inside.value() if rivals is None else inside.value() - rivals
        return self.strangeness_at(ahead, X, beside, scores.shape[1])

    def energies(self, scores: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Scores of candidates in units of the temperature, float64; `seen` says which are seen."""
        known = self.acceptance_
        found = np.asarray(scores - known.seen_penalty * seen, np.float64)
        found /= known.temperature
        return found

    def energies_of_rivals(self, X: Any, beside: Beside) -> np.ndarray | None:
        """Energy of what images are compared with, of shape (n_samples,); None without rivals."""
        if not beside.rivals:
            return None
        known, found = self.acceptance_, np.empty(len(X))

        def keep(rows: slice, parts: Parts) -> None:
            total = LogSum()
            for _, scores in parts:
                less = np.asarray(scores - known.seen_penalty, np.float64)
                total.add(less / known.temperature)
            found[rows] = total.value() - np.log(len(beside.rivals))

        self.each_scored(X, beside.rivals, keep)
        return found

    def strangeness_at(
        self, ahead: np.ndarray, X: Any, beside: Beside, n_candidates: int
    ) -> np.ndarray:
        """Strangeness of images by how far candidates are ahead, see `membership`."""
        kinship = self.acceptance_.kinship
        found = beside.outsiders.rates(ahead, n_candidates)
        with single_threaded_blas():
            kin = kinship(np.asarray(X))
        found[kin < kinship.threshold] = 1.0
        return found

    def beside(self, classes: Any = None) -> Beside:
        """What candidates are compared with; it holds for all images."""
        known = self._known_acceptance()
        names = self.candidate_names(classes)
        others = self.classes_[~np.isin(self.classes_, names)]
        seen = np.isin(names, self.classes_)
        if len(others) > FEW_RIVALS * len(self.classes_):
            return Beside(known.rivalled, others.tolist(), seen)
        return Beside(known.alone, [], seen)

    def usual_strangeness(self, classes: Any = None, share: float = 0.95) -> float:
        """Strangeness that this share of the pictures of candidates does not exceed.

        Parameters
        ----------
        classes
            The candidates; see `decision_function`.
        share : float
        """
        table = self.beside(classes).outsiders
        return table.rate_for(len(self.candidate_names(classes)), share)

    def predict_proba_each(self, X: Any, classes: Any = None) -> np.ndarray:
        """Probability of each class by itself, whatever the other candidates are.

        Rows do not add up to one: a picture of none of the classes has small numbers everywhere.
        Each is the probability that an image is of that class if half of the images shown were,
        and the others of other classes of the same kind, those seen in training included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        classes
            Which classes to look at; see `decision_function`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        known = self._known_acceptance()
        names = self.candidate_names(classes)
        of_seen = self.class_scores(X, "seen") - known.seen_penalty
        scores = self.class_scores(X, classes) - known.seen_penalty * np.isin(names, self.classes_)
        ahead = ahead_of_rivals(
            scores, of_seen, [_place(name, self.classes_) for name in names], known.temperature
        )
        return np.asarray(expit(known.slope * ahead + known.offset))

    def pack_acceptance(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What the model file holds of it: arrays, and plain data."""
        if not hasattr(self, "acceptance_"):
            return {}, {}
        arrays = self.acceptance_.arrays()
        return (
            {f"acceptance.{name}": array for name, array in arrays.items()},
            {"acceptance": self.acceptance_.facts()},
        )

    def unpack_acceptance(self, tensors: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
        """Take back what `pack_acceptance` gave; older files have none of it."""
        if "acceptance" not in meta:
            return
        prefix = "acceptance."
        arrays = {
            name.removeprefix(prefix): array
            for name, array in tensors.items()
            if name.startswith(prefix)
        }
        self.acceptance_ = Acceptance.rebuilt(arrays, dict(meta["acceptance"]), self.n_features_in_)
