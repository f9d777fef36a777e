"""What to do next, from the numbers of an evaluation.

Every rule is a function that looks at one thing and answers with a sentence, or with nothing. The
rules are ordered by how much is usually won by following them; `advice` gives the first few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from latem.core.messages import first_few
from latem.embeddings.table import ClassEmbeddings
from latem.evaluation.result import Evaluation

_NEAR_CHANCE = 1.5  # times chance, below which a model knows little of the classes
_ALIKE = 0.5  # of the usual distance between descriptions, below which two are nearly the same
_FEW = 20  # classes to learn from
_GAIN = 0.02  # of H, from which the penalty on seen classes is worth its use
_HUB = 2.0  # times as many answers as images
_SHOWN = 3  # traits in which two classes differ
_FEWEST = 3  # images, below which a pattern may be chance
_MISCALIBRATED = 0.1  # calibration error
_SPARED = 0.6  # of the risk, if half of the images are answered


@dataclass(frozen=True)
class Learned:
    """What a model has learned from, as far as advice depends on it.

    Attributes
    ----------
    n_classes : int
    table : ClassEmbeddings or None
        Descriptions of the unseen classes; None if the model has several tables.
    balanced : bool
        Whether the model keeps classes from being the answer too often.
    calibrated : bool
        Whether its training chose temperature and penalty, which answers use by themselves.
    """

    n_classes: int
    table: ClassEmbeddings | None = None
    balanced: bool = False
    calibrated: bool = False


def advice(result: Evaluation, learned: Learned, n: int = 4) -> list[str]:
    """The most important things to do next, at least one.

    Parameters
    ----------
    result : Evaluation
        With its answers.
    learned : Learned
    n : int
        How many at most.

    Returns
    -------
    list of str
    """
    found = [
        near_chance(result),
        seen_bias(result) if not learned.calibrated else "",
        confused_pair(result, learned.table),
        hub(result, learned.balanced),
        few_classes(learned.n_classes),
        too_sure(result, learned.calibrated),
        worth_withholding(result),
    ]
    sentences = [sentence for sentence in found if sentence]
    return sentences[:n] or [
        "Nothing stands out. More classes with pictures to learn from, and descriptions with more "
        "traits, are what usually helps."
    ]


def near_chance(result: Evaluation) -> str:
    """Whether the model is hardly better than guessing."""
    chance = 1 / result.n_classes
    if result.top_1 >= _NEAR_CHANCE * chance:
        return ""
    return (
        f"With {result.top_1:.1%} the model is hardly better than guessing ({chance:.1%}): check "
        f"that names and descriptions belong together (latem data check), and try another class "
        f"table or another encoder."
    )


def seen_bias(result: Evaluation) -> str:
    """Whether seen classes take the images of unseen ones, and the penalty mends it."""
    found = result.generalized
    if found is None or found.stacked.harmonic < found.plain.harmonic + _GAIN:
        return ""
    return (
        f"Among all classes it prefers those it has seen: use a penalty of {found.gamma:.3g} on "
        f"their scores (latem predict --classes all --seen-penalty {found.gamma:.3g}), which "
        f"raises H from {found.plain.harmonic:.1%} to {found.stacked.harmonic:.1%}."
    )


def confused_pair(result: Evaluation, table: ClassEmbeddings | None) -> str:
    """What the descriptions say of the two classes that are confused most often."""
    assert result.scored is not None
    counts = result.scored.confusion()
    both = counts.to_numpy() + counts.to_numpy().T
    np.fill_diagonal(both, 0)
    i, j = divmod(int(both.argmax()), len(both))
    if both[i, j] < _FEWEST:
        return ""
    a, b = counts.index[i], counts.index[j]
    there, back = counts.to_numpy()[[i, j], [j, i]].tolist()
    if there and back:
        taken = f"{a} and {b} are taken for each other most often ({there} and {back} images)"
    elif there:
        taken = f"{a} is taken for {b} most often ({there} images)"
    else:
        taken = f"{b} is taken for {a} most often ({back} images)"
    if table is None:
        return f"{taken}: compare their descriptions, and add what tells them apart."
    if closeness(table, a, b) <= _ALIKE:
        return f"{taken}, and their descriptions are nearly the same: add a trait that differs."
    differing = _differing(table, a, b)
    if not differing:
        return f"{taken}: compare their descriptions, and add what tells them apart."
    return (
        f"{taken}. Their descriptions differ most in {differing}: check that this is so and "
        f"that the pictures show it, and learn from more classes that differ in it."
    )


def closeness(table: ClassEmbeddings, a: Any, b: Any) -> float:
    """Distance of two descriptions, divided by the median distance of all pairs; 0 if equal.

    >>> table = ClassEmbeddings(["a", "b", "c"], [[0.0, 1.0], [0.0, 1.5], [2.0, 1.0]])
    >>> round(closeness(table, "a", "b"), 2)
    0.25
    """
    apart = pdist(table.vectors)
    own = squareform(apart)[tuple(table.positions([a, b]))]
    usual = float(np.median(apart))
    return float(own / usual) if usual else 0.0


def hub(result: Evaluation, balanced: bool) -> str:
    """Whether one class is the answer far too often."""
    assert result.scored is not None
    names, answers = np.unique(result.scored.named, return_counts=True)
    images = np.array([(result.scored.y == name).sum() for name in names.tolist()])
    usual = len(result.scored) / result.n_classes
    excess = answers / np.maximum(images, usual)
    worst = int(excess.argmax())
    if excess[worst] < _HUB or answers[worst] - images[worst] < _FEWEST:
        return ""
    remedy = (
        "check its description, which fits too many images"
        if balanced
        else "balance_classes=True keeps a class from being the answer too often (LatEm, ESZSL)"
    )
    return (
        f"{names[worst]} is the answer for {answers[worst]} images, but only {images[worst]} are "
        f"of this class: {remedy}."
    )


def few_classes(n_classes: int) -> str:
    """Whether there are few classes to learn from."""
    if n_classes >= _FEW:
        return ""
    return (
        f"It has learned from {n_classes} classes only: pictures of further classes teach it more "
        f"about the traits than further pictures of the same ones."
    )


def too_sure(result: Evaluation, calibrated: bool = False) -> str:
    """Whether probabilities are off, and a temperature mends it, unless it does already."""
    found = result.probabilities
    if found is None or found.test.ece_before < _MISCALIBRATED:
        return ""
    before, after = found.test.ece_before, found.test.ece_after
    if after > before / 2:
        return (
            f"Do not take its probabilities at their word: they are {after:.1%} off even after "
            f"calibration."
        )
    if calibrated:
        return ""
    return (
        f"Calibrate before its probabilities are used (latem.calibrate_answers, or train it with "
        f"latem train): they "
        f"are {before:.1%} off as they are, {after:.1%} at temperature "
        f"{found.test.temperature:.3g}."
    )


def worth_withholding(result: Evaluation) -> str:
    """Whether wrong answers are unsure ones, so that withholding these helps."""
    found = result.probabilities
    if found is None:
        return ""
    every, half = found.risk_coverage.at(1.0), found.risk_coverage.at(0.5)
    if not every or half > _SPARED * every:
        return ""
    return (
        f"Where a wrong name costs more than none, withhold the unsure ones (choose_rejection, "
        f"predict_or_none): of the surer half of its answers {half:.1%} are wrong, of all "
        f"{every:.1%}."
    )


def _differing(table: ClassEmbeddings, a: Any, b: Any) -> str:
    """The traits in which two classes differ most; empty if the columns have no names."""
    if table.columns is None:
        return ""
    spread = np.ptp(table.vectors, axis=0)
    gaps = np.abs(table[a] - table[b]) / np.where(spread > 0, spread, 1)
    order = np.argsort(-gaps, kind="stable")[:_SHOWN]
    return first_few([table.columns[k] for k in order if gaps[k] > 0])
