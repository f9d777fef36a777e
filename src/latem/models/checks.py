"""Whether something is a model, and what to do if it only holds one."""

from __future__ import annotations

from typing import Any

from latem.datasets.dataset import ZeroShotDataset
from latem.models.base import ZeroShotClassifier


def check_is_model(model: Any, user: str) -> None:
    """Refuse what is no model of the library, in the same words everywhere.

    Parameters
    ----------
    model : anything
        A `Pipeline` around a model is none: its steps change the features before the model sees
        them, and it does not say which classes it describes.
    user : str
        Function or class that was given it.
    """
    if isinstance(model, ZeroShotClassifier):
        return
    if isinstance(model, type):
        raise TypeError(
            f"{user} takes a model of latem, not a class: call {model.__name__}(...) first."
        )
    raise TypeError(f"{user} takes a model of latem, not {type(model).__name__}{_remedy(model)}.")


def check_fits(model: Any, dataset: ZeroShotDataset) -> None:
    """Refuse a dataset whose features are not of the width that a fitted model takes."""
    width = dataset.features.shape[1]
    if width != model.n_features_in_:
        raise ValueError(
            f"The model was trained on {model.n_features_in_} features, but the images of "
            f"{dataset.name or 'the dataset'} have {width}: give the dataset it was trained on."
        )


def _remedy(model: Any) -> str:
    """What to do instead, by what is around the model."""
    if hasattr(model, "steps"):
        return (
            ": give the model itself, which scales features by its parameter feature_scaling, and "
            "do any other step to the dataset's features beforehand"
        )
    if hasattr(model, "best_estimator_"):
        return ": give its best_estimator_"
    return ""
