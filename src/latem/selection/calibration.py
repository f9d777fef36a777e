"""What a model must know to answer well, chosen on held-out classes.

`calibrate_answers` chooses the temperature of the probabilities, the penalty on seen classes, and
what counts as "none of these". The model itself cannot tell: it has seen the images of all its
classes. So a *twin*, an equal model, is fitted without some of the classes; these play the unseen
ones. Images of the other classes that are set aside play the seen ones. Outsiders are images of
classes that are not among the candidates: held-out classes that are left out of a random list of
candidates, and seen ones, half and half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from latem.core.progress import progress_bar
from latem.metrics.calibration import (
    CalibrationReport,
    check_rate,
    class_codes,
    expected_calibration_error,
    fit_temperature,
    log_loss_of,
    probabilities_of,
)
from latem.metrics.generalized import GeneralizedScores, best_gamma, generalized_accuracy
from latem.metrics.open_set import Kinship, Outsiders, rival_energy
from latem.models.acceptance import Acceptance, ahead_of_rivals
from latem.models.base import ZeroShotClassifier
from latem.models.checks import check_is_model
from latem.models.folds import class_folds

FALSE_ACCEPT_RATE = 0.05
_DRAWS = 10  # random lists of candidates
_NEGATIVES = 20  # other classes that a picture is compared with


@dataclass(frozen=True)
class AnswerReport:
    """What was chosen, and how well it did on the held-out classes.

    Attributes
    ----------
    probabilities : CalibrationReport
        With the temperature; before and after it.
    seen_penalty : float
    plain, penalised : GeneralizedScores
        Seen and held-out classes together, without and with the penalty.
    false_accept_rate : float
        Wanted share of outsiders that are named.
    acceptance : Acceptance
    """

    probabilities: CalibrationReport
    seen_penalty: float
    plain: GeneralizedScores
    penalised: GeneralizedScores
    false_accept_rate: float
    acceptance: Acceptance

    def coverage(self, n_candidates: int, rate: float | None = None) -> float:
        """Share of the candidates' own pictures that are named among this many candidates."""
        wanted = self.false_accept_rate if rate is None else rate
        return self.acceptance.rivalled.covered(n_candidates, wanted)


def calibrate_answers(
    model: ZeroShotClassifier,
    X: Any,
    y: Any,
    *,
    cv: int | Sequence[Any] = 5,
    false_accept_rate: float = FALSE_ACCEPT_RATE,
    share: float = 0.2,
    seed: int = 0,
    verbose: bool = False,
) -> AnswerReport:
    """Choose temperature, penalty on seen classes and "none of these" on held-out classes.

    They are kept in the model as `temperature_`, `seen_penalty_` and `acceptance_`.

    Parameters
    ----------
    model : a fitted model
    X : ndarray of shape (n_samples, n_features)
        The images it was fitted to.
    y : ndarray of shape (n_samples,)
        Their class names.
    cv : int or sequence of class names
        Number of folds of classes, or the classes to hold out once.
    false_accept_rate : float
        Wanted share of outsiders that are named.
    share : float
        Share of each class's images that are set aside to play the seen classes.
    seed : int
        Which images these are, how classes are assigned to folds, and the seed of the twins if
        the model itself has none.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    AnswerReport

    Examples
    --------
    >>> from latem import ESZSL, calibrate_answers, make_latent_world
    >>> world = make_latent_world(n_poses=1, random_state=0)
    >>> model = ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> report = calibrate_answers(model, *world.training(), cv=world.split().val)
    >>> report.probabilities.log_loss_after < report.probabilities.log_loss_before
    True
    """
    check_is_model(model, "calibrate_answers")
    check_is_fitted(model)
    check_rate(false_accept_rate)
    if not 0 < share < 1:
        raise ValueError(f"share must lie between 0 and 1, but is {share}.")
    X, y = np.asarray(X), np.asarray(y)
    folds = class_folds(y, cv, seed, "calibrate_answers")
    twins = []
    with progress_bar(verbose, "calibrating", total=len(folds), unit="trainings") as done:
        for fold in folds:
            twins.append(HeldOutTwin(model, X, y, fold.out, share=share, seed=seed))
            done()
    temperature = float(np.exp(np.mean([np.log(twin.temperature()) for twin in twins])))
    penalty = float(np.mean([twin.penalty() for twin in twins]))
    slope, offset = _fit_each(twins, temperature, penalty, seed)
    rivalled, alone = _outsiders(twins, temperature, penalty, seed)
    acceptance = Acceptance(
        false_accept_rate=float(false_accept_rate),
        temperature=temperature,
        seen_penalty=penalty,
        slope=slope,
        offset=offset,
        kinship=Kinship.of(X, y),
        rivalled=rivalled,
        alone=alone,
    )
    model.forget_calibration()
    model.temperature_, model.seen_penalty_ = temperature, penalty
    model.acceptance_ = acceptance
    plain, penalised = (_mean_scores(twins, gamma) for gamma in (0.0, penalty))
    return AnswerReport(
        probabilities=_probability_report(twins, temperature),
        seen_penalty=penalty,
        plain=plain,
        penalised=penalised,
        false_accept_rate=float(false_accept_rate),
        acceptance=acceptance,
    )


class HeldOutTwin:
    """An equal model that has never seen some of the classes, and its scores.

    Parameters
    ----------
    model : a fitted model
    X, y : ndarrays
        The images it was fitted to, and their class names.
    out : ndarray of shape (n_samples,), bool
        Which images are of classes to hold out.
    share : float
        Share of each other class's images to set aside.
    seed : int

    Attributes
    ----------
    seen, held_out, others : ndarrays
        Classes the twin learned from, classes held out, and classes that have only a description.
    model : the twin, fitted
    aside : ndarray, bool
        Which of the images of other classes were set aside.
    y_out, y_aside : ndarrays
        Classes of the images of held-out classes, and of those set aside.
    by_seen, by_pool : dict of str to ndarray
        For "out" and "aside" the scores of the seen classes, and of the pool: held-out classes,
        then the others.
    is_kin : dict of str to ndarray, bool
        For both, whether the images are of the kind that was learned from.
    """

    def __init__(
        self, model: Any, X: np.ndarray, y: np.ndarray, out: np.ndarray, *, share: float, seed: int
    ):
        rest = np.flatnonzero(~out)
        self.aside = _kept_aside(y[rest], share, seed)
        learned, aside = rest[~self.aside], rest[self.aside]
        twin = model.twin(seed)
        twin.records_training = False
        twin.fit(X[learned], y[learned])
        self.model = twin
        self.seen = twin.classes_
        self.y_out, self.y_aside = y[out], y[aside]
        self.held_out = np.unique(self.y_out)
        known = set(np.unique(y).tolist())
        self.others = [name for name in twin.candidate_names("all").tolist() if name not in known]
        self.pool = [*self.held_out.tolist(), *self.others]
        kinship = Kinship.of(X[learned], y[learned])
        images = {"out": X[out], "aside": X[aside]}
        seen = self.seen.tolist()
        self.by_seen, self.by_pool = (
            {part: _scores(twin, images[part], names) for part in images}
            for names in (seen, self.pool)
        )
        self.is_kin = {
            part: kinship(X) >= kinship.threshold if len(X) else np.empty(0, bool)
            for part, X in images.items()
        }

    @property
    def of_held_out(self) -> np.ndarray:
        """Scores of the images of held-out classes among these."""
        return self.by_pool["out"][:, : len(self.held_out)]

    def codes(self) -> np.ndarray:
        """Numbers of their classes."""
        return class_codes(self.y_out, self.held_out)

    def temperature(self) -> float:
        """Temperature of least log-loss on the held-out classes."""
        return fit_temperature(self.of_held_out, self.codes())

    def penalty(self) -> float:
        """γ of the largest harmonic mean of seen and held-out classes."""
        return best_gamma(*self._both()) if len(self.y_aside) else 0.0

    def generalized(self, gamma: float) -> GeneralizedScores:
        """Accuracies of seen and held-out classes together."""
        return generalized_accuracy(*self._both(), gamma)

    def _both(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        n = len(self.held_out)
        scores = np.concatenate(
            [np.hstack([self.by_seen[p], self.by_pool[p][:, :n]]) for p in ("aside", "out")]
        )
        y = np.concatenate([self.y_aside, self.y_out])
        return scores, y, np.concatenate([self.seen, self.held_out]), self.seen


def _scores(twin: Any, X: np.ndarray, names: list[Any]) -> np.ndarray:
    if not len(X):
        return np.empty((0, len(names)))
    return np.asarray(twin.class_scores(X, names), np.float64)


def _kept_aside(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which images to set aside: a share of each class, at least one if it has several."""
    rng = np.random.default_rng(seed)
    aside = np.zeros(len(y), bool)
    for name in np.unique(y):
        rows = np.flatnonzero(y == name)
        count = min(max(round(share * len(rows)), 1), len(rows) - 1)
        aside[rng.permutation(rows)[:count]] = True
    return aside


def _probability_report(twins: list[HeldOutTwin], temperature: float) -> CalibrationReport:
    """Of all folds together; a fold with fewer classes than the largest gives the rest nothing."""
    width = max(len(twin.held_out) for twin in twins)
    codes = np.concatenate([twin.codes() for twin in twins])
    loss, error = {}, {}
    for t in (1.0, temperature):
        parts = [probabilities_of(twin.of_held_out, t) for twin in twins]
        padded = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts]
        probabilities = np.concatenate(padded)
        loss[t] = log_loss_of(probabilities, codes)
        error[t] = expected_calibration_error(probabilities, codes)
    return CalibrationReport(
        temperature=temperature,
        n_images=len(codes),
        n_classes=sum(len(twin.held_out) for twin in twins),
        log_loss_before=loss[1.0],
        log_loss_after=loss[temperature],
        ece_before=error[1.0],
        ece_after=error[temperature],
    )


def _mean_scores(twins: list[HeldOutTwin], gamma: float) -> GeneralizedScores:
    found = [twin.generalized(gamma) for twin in twins if len(twin.y_aside)]
    if not found:
        return GeneralizedScores(0.0, 0.0, 0.0)
    names = ("seen", "unseen", "harmonic")
    return GeneralizedScores(
        *(float(np.mean([getattr(one, name) for one in found])) for name in names)
    )


def _fit_each(
    twins: list[HeldOutTwin], temperature: float, penalty: float, seed: int
) -> tuple[float, float]:
    """Slope and offset of probabilities of single classes: own classes against as many others."""
    rng = np.random.default_rng(seed)
    own, other = [], []
    for twin in twins:
        for part, y in (("out", twin.y_out), ("aside", twin.y_aside)):
            if not len(y):
                continue
            ahead = ahead_of_rivals(
                twin.by_pool[part],
                twin.by_seen[part] - penalty,
                [None] * len(twin.pool),
                temperature,
            )
            mine = np.equal(np.array(twin.pool)[None, :], y[:, None])
            own.append(ahead[mine])
            n = min(_NEGATIVES, ahead.shape[1])
            drawn = rng.integers(ahead.shape[1], size=(len(y), n))
            rows = np.arange(len(y))[:, None]
            other.append(ahead[rows, drawn][~mine[rows, drawn]])
    values = [np.concatenate(part) for part in (own, other)]
    x = np.concatenate(values)[:, None]
    y = np.repeat([1, 0], [len(part) for part in values])
    fitted = LogisticRegression(C=1e6, class_weight="balanced").fit(x, y)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def _outsiders(
    twins: list[HeldOutTwin], temperature: float, penalty: float, seed: int
) -> tuple[Outsiders, Outsiders]:
    """Membership of outsiders with rivals beside the candidates, and without."""
    rng = np.random.default_rng(seed)
    most = min(len(twin.pool) for twin in twins) - 1
    sizes = sorted({int(n) for n in 2 ** np.arange(20) if n < most} | {most})
    n_seen = round(np.mean([len(twin.seen) for twin in twins]))
    rivalled, alone = _Samples(), _Samples()
    for twin in twins:
        scores = np.concatenate([twin.by_pool["out"], twin.by_pool["aside"]]) / temperature
        rivals = np.concatenate([twin.by_seen["out"], twin.by_seen["aside"]])
        of_rivals = rival_energy(rivals - penalty, temperature)
        is_kin = np.concatenate([twin.is_kin["out"], twin.is_kin["aside"]])
        aside = np.repeat([False, True], [len(twin.y_out), len(twin.y_aside)])
        codes = np.concatenate([twin.codes(), np.zeros(len(twin.y_aside), np.intp)])
        for _ in range(_DRAWS):
            order = rng.permutation(len(twin.pool))
            place = np.argsort(order)  # of each class of the pool
            energies = np.logaddexp.accumulate(scores[:, order], axis=1)
            rank = np.where(aside, len(order), place[codes])
            for n in (0, *sizes):
                inside = rank < n
                near = ~inside & ~aside
                inner = energies[:, n - 1] if n else np.full(len(scores), -np.inf)
                if n:
                    value = np.where(is_kin, inner - of_rivals, -np.inf)
                    rivalled.add(n, value, inside, [near, aside])
                value = np.where(
                    is_kin, np.logaddexp(inner, of_rivals + np.log(rivals.shape[1])), -np.inf
                )
                alone.add(n_seen + n, value, inside | aside, [near])
    return rivalled.measured(), alone.measured()


class _Samples:
    """Memberships by number of candidates."""

    def __init__(self) -> None:
        self._found: dict[int, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}

    def add(self, n: int, value: np.ndarray, inside: np.ndarray, outside: list[np.ndarray]) -> None:
        """Memberships of insiders, and of one or two sorts of outsiders, which weigh the same."""
        groups = [group for group in outside if group.any()]
        if not groups:
            return
        weights = [np.full(group.sum(), 1 / group.sum() / len(groups)) for group in groups]
        of_groups = np.concatenate([value[group] for group in groups])
        self._found.setdefault(n, []).append((of_groups, np.concatenate(weights), value[inside]))

    def measured(self) -> Outsiders:
        """All of them, as thresholds."""
        joined = {}
        for n, drawn in self._found.items():
            values, weights, inside = (np.concatenate(part) for part in zip(*drawn, strict=True))
            joined[n] = (values, weights, inside)
        return Outsiders.measured(joined)
