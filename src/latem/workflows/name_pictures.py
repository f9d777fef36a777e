"""From pictures to names, by a model that remembers its encoder; and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from latem.inspection.explain import explain_predictions
from latem.models.answering import Asked
from latem.models.answers import Answer, Answers
from latem.models.base import ZeroShotClassifier
from latem.models.checks import check_is_model


def name_pictures(
    model: ZeroShotClassifier,
    pictures: Iterable[Any],
    classes: Any = "unseen",
    *,
    top: int = 5,
    seen_penalty: float | None = None,
    false_accept_rate: float | None = None,
    explain: bool = False,
    groups: Any = None,
    encoder_options: Mapping[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Answers:
    """Name pictures with a model that remembers its encoder.

    It is the model's own method of that name, and can say why.

    Parameters
    ----------
    model : fitted model
    pictures, classes, top, seen_penalty, false_accept_rate, encoder_options
        As for the models' `name_pictures`.
    explain : bool
        Whether to say why the first name was given: `Answer.explanation` is then what
        `Explanation.to_dict` gives, with the whole as "text".
    groups
        Which traits belong together in explanations; see `explain_predictions`.
    progress : callable, optional
        Called with the number of pictures done.

    Returns
    -------
    Answers
    """
    check_is_model(model, "name_pictures")
    asked = Asked(model, classes, top, seen_penalty, false_accept_rate)
    found: list[Answer] = []
    for answers in answered(
        asked, pictures, explain=explain, groups=groups, encoder_options=encoder_options
    ):
        found += answers
        if progress is not None:
            progress(len(found))
    return Answers(found)


def answered(
    asked: Asked,
    pictures: Iterable[Any],
    *,
    explain: bool = False,
    groups: Any = None,
    encoder_options: Mapping[str, Any] | None = None,
) -> Iterator[list[Answer]]:
    """Answers to pictures batch by batch, each as soon as it is there."""
    for answers, X in asked.batches(pictures, encoder_options):
        if not explain or not len(X) or len(asked.names) < 2:  # nothing to compare with
            yield answers
            continue
        found = iter(
            explain_predictions(
                asked.model, X, asked.classes, groups=groups, seen_penalty=asked.penalty
            )
        )
        yield [
            answer
            if answer.error
            else replace(answer, explanation={**(why := next(found)).to_dict(), "text": why.text()})
            for answer in answers
        ]
