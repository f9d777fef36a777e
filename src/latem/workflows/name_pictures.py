"""From pictures to names, by a model that remembers its encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latem.datasets.picture_files import PictureError
from latem.inspection.explain import explain_predictions
from latem.models.base import ZeroShotClassifier
from latem.models.checks import check_is_model
from latem.models.scoring import best_k

_BATCH = 32


@dataclass(frozen=True)
class Named:
    """A picture and its best classes.

    Attributes
    ----------
    picture : path
    names : list of class names, best first
    scores : list of float
    explanation : str
        Why, if it was asked for.
    """

    picture: Path
    names: list[Any]
    scores: list[float]
    explanation: str = ""


def name_pictures(
    model: ZeroShotClassifier,
    pictures: Sequence[Path],
    classes: Any = "unseen",
    *,
    top: int = 5,
    seen_penalty: float = 0.0,
    explain: bool = False,
    encoder_options: Mapping[str, Any] | None = None,
    unreadable: Callable[[Path, str], None] | None = None,
) -> list[Named]:
    """Name pictures with a model that remembers its encoder.

    Parameters
    ----------
    model : fitted model
    pictures : sequence of paths
    classes
        Which classes may be the answer; see `decision_function`.
    top : int
        How many to give, at most as many as there are.
    seen_penalty : float
        γ of calibrated stacking: subtracted from the scores of seen classes, which models prefer.
    explain : bool
        Whether to say why; not together with a penalty, which explanations leave out.
    encoder_options : mapping, optional
        Options for the encoder, such as a local weight file.
    unreadable : callable, optional
        Called with the path and the reason for every picture that cannot be read; without it the
        first one is an error.
    """
    from latem.features.encoders import load_encoder
    from latem.features.pictures import quiet_pillow

    if seen_penalty and explain:
        raise ValueError(
            "Explanations leave out the penalty on seen classes: ask for one or the other."
        )
    check_is_model(model, "name_pictures")
    spec = model.encoder_
    if spec is None:
        raise ValueError(
            "This model does not know which encoder made its features, so it cannot name pictures; "
            "train it on a dataset made by latem embed images."
        )
    encoder = load_encoder(spec, **dict(encoder_options or {}))
    readable, prepared = [], []
    with quiet_pillow():
        for path in pictures:
            try:
                prepared.append(encoder.prepare(path))
                readable.append(path)
            except PictureError as error:
                if unreadable is None:
                    raise
                unreadable(path, str(error))
    if not readable:
        return []
    X = np.concatenate(
        [
            encoder.encode_batch(np.stack(prepared[first : first + _BATCH]))
            for first in range(0, len(prepared), _BATCH)
        ]
    )
    candidates = model.candidate_names(classes)
    k = min(top, len(candidates))
    if seen_penalty:
        by_class = model.class_scores(X, classes)
        by_class[:, np.isin(candidates, model.classes_)] -= seen_penalty
        best = best_k(by_class, k)
        names, scores = candidates[best], np.take_along_axis(by_class, best, axis=1)
    else:
        names, scores = model.top_k(X, k, classes=classes, return_scores=True)
    reasons: Iterable[str] = [""] * len(readable)
    if explain:
        reasons = [why.text() for why in explain_predictions(model, X, classes)]
    return [
        Named(path, best.tolist(), [float(score) for score in values], why)
        for path, best, values, why in zip(readable, names, scores, reasons, strict=True)
    ]
