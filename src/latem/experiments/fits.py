"""One training: what it is, and what is kept of it.

A `Fit` names everything that decides a training; equal fits are trained once, however many
tables need them. Fits of part "train" are scored on the val classes and serve to choose parameters
and weights; fits of part "all" learn from train and val classes and are scored on the unseen ones.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from latem.datasets.dataset import ZeroShotDataset
from latem.embeddings.table import ClassEmbeddings
from latem.inspection.maps import top_images
from latem.metrics import confusion_matrix, mean_class_accuracy, per_class_accuracy
from latem.models import model_rows
from latem.models.ranking import RankingModel
from latem.models.sgd.best_epoch import EpochScores

N_TOP = 8


@dataclass(frozen=True)
class Fit:
    """A training.

    Attributes
    ----------
    dataset : str
        One of the paper's keys, such as "CUB".
    split : str
    part : {"train", "all"}
    embeddings : tuple of str
        Several are joined by early fusion.
    model : str
    params : str
        JSON of the parameters.
    seed : int
    """

    dataset: str
    split: str
    part: str
    embeddings: tuple[str, ...]
    model: str
    params: str
    seed: int

    @classmethod
    def of(cls, *, params: Mapping[str, Any], **what: Any) -> Fit:
        """Fit with its parameters in canonical form."""
        return cls(params=json.dumps(dict(params), sort_keys=True, ensure_ascii=False), **what)

    def __str__(self) -> str:
        what = f"{self.dataset} {'+'.join(self.embeddings)}, {self.split}"
        return f"{self.model} on {what}" + (", to choose" if self.part == "train" else "")

    def key(self, code: str, data: str) -> str:
        """Name of the result's file.

        Parameters
        ----------
        code, data : str
            Digests of the code that decides a training and of the dataset; with others the
            result gets another name.
        """
        parts = [code, data, *map(str, self._tuple())]
        digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=10).hexdigest()
        return f"{self.dataset}-{self.split}-{self.part}-{'+'.join(self.embeddings)}-{digest}"

    @property
    def is_shown(self) -> bool:
        """Whether the report shows details of it: a final model on the standard split."""
        return self.split == "standard" and self.part == "all"

    @property
    def keeps_scores(self) -> bool:
        """Whether the scores of the images it is judged by are kept, for combining models.

        Those of unseen images are combined, and those of val images choose the weights. Trainings
        that are watched over their epochs only choose a number of epochs.
        """
        return self.split == "standard" and "watch" not in json.loads(self.params)

    def _tuple(self) -> tuple[Any, ...]:
        return (
            self.dataset, self.split, self.part, self.embeddings, self.model, self.params, self.seed
        )  # fmt: skip


@dataclass
class Outcome:
    """What is kept of a training.

    Attributes
    ----------
    result : dict
        Plain data; the same bytes whenever and wherever it is trained.
    scores : ndarray of shape (n_images, n_classes) or None
        Of the images it is judged by, for combining models; only if the fit `keeps_scores`.
    seconds : float
        Processor time of its thread, which does not grow if the machine is busy.
    """

    result: dict[str, Any]
    scores: np.ndarray | None = None
    seconds: float = 0.0


def digest_dataset(dataset: ZeroShotDataset) -> str:
    """Digest of everything in a dataset that a result can depend on."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((dataset.features.shape, dataset.features.dtype.str)).encode())
    for first in range(0, len(dataset.features), 4096):
        digest.update(np.ascontiguousarray(dataset.features[first : first + 4096]).tobytes())
    digest.update(repr(dataset.labels.tolist()).encode())
    if dataset.images is not None:  # galleries name them
        digest.update(repr(dataset.images.tolist()).encode())
    for name, table in sorted(dataset.embeddings.items()):
        digest.update(repr((name, table.names.tolist())).encode())
        digest.update(table.vectors.tobytes())
    for name, split in sorted(dataset.splits.items()):
        digest.update(repr((name, split)).encode())
    return digest.hexdigest()


def class_table(dataset: ZeroShotDataset, embeddings: tuple[str, ...]) -> ClassEmbeddings:
    """Class table of a fit: one embedding, or several joined, for the classes that all describe."""
    first, *others = (dataset.embeddings[name] for name in embeddings)
    if not others:
        return first
    names = [name for name in first.names.tolist() if all(name in other for other in others)]
    parts = []
    for title, table in zip(embeddings, (first, *others), strict=True):
        vectors = table.select(names).vectors
        parts.append(ClassEmbeddings(names, vectors, name=title, columns=table.columns))
    return parts[0].concat(*parts[1:])


def run_fit(fit: Fit, dataset: ZeroShotDataset, *, n_threads: int | None = 1) -> Outcome:
    """Train and score.

    Parameters
    ----------
    fit : Fit
    dataset : ZeroShotDataset
    n_threads : int or None
        Threads inside the training; the result does not depend on it.
    """
    start = time.thread_time()
    params = json.loads(fit.params)
    watched = params.pop("watch", None)  # numbers of epochs to score after
    split = dataset.split(fit.split)
    chosen = fit.part == "all"
    X, y = dataset.training(fit.split, val=chosen)
    X_new, y_new = dataset.testing(fit.split) if chosen else dataset.validation(fit.split)
    present = set(y_new.tolist())
    candidates = sorted(name for name in (split.test if chosen else split.val) if name in present)
    model = make_model(fit, class_table(dataset, fit.embeddings), params, split.val)
    model.set_params(n_threads=n_threads)
    by_epoch: dict[str, float] = {}
    if watched is None:
        model.fit(X, y)
    else:
        scores_by_epoch = EpochScores(X_new, y_new, candidates, watched)
        model.fit(X, y, callback=scores_by_epoch)
        by_epoch = {str(epoch): score for epoch, score in scores_by_epoch.by_epoch.items()}
    scores = model.decision_function(X_new, candidates)
    named = np.asarray(candidates)[scores.argmax(axis=1)]
    result: dict[str, Any] = {
        "accuracy": mean_class_accuracy(y_new, named),
        "by_epoch": by_epoch,
        "params": {
            name: getattr(model, name) for name in ("gamma_", "lam_") if hasattr(model, name)
        },
    }
    if fit.is_shown:
        by_class = per_class_accuracy(y_new, named)
        matrix = confusion_matrix(y_new, named).reindex(
            index=candidates, columns=candidates, fill_value=0
        )
        result["per_class"] = {str(name): float(value) for name, value in by_class.items()}
        result["confusion"] = matrix.to_numpy().astype(int).tolist()
    if isinstance(model, RankingModel):
        result |= _training_record(model, len(X), full=fit.is_shown)
        if fit.is_shown:
            result["top_images"] = _top_images(model, dataset, fit.split, candidates)
    kept = scores.astype(np.float32) if fit.keeps_scores else None
    return Outcome(result, kept, time.thread_time() - start)


def make_model(
    fit: Fit, table: ClassEmbeddings, params: dict[str, Any], val: tuple[Any, ...]
) -> Any:
    """Unfitted model of a fit."""
    params = dict(params)
    if params.get("cv") == "val":
        params["cv"] = list(val)
    if params.get("feature_scaling") == "none":
        params["feature_scaling"] = None
    model = model_rows.find(fit.model).load()(table, **params)
    if "random_state" in model.get_params():
        model.set_params(random_state=fit.seed)
    return model


def _training_record(model: RankingModel, n_images: int, *, full: bool) -> dict[str, Any]:
    """What is known of an SGD training: sizes for the estimate of its cost, maps over time."""
    history = model.history_
    record: dict[str, Any] = {
        "n_maps": len(model.maps_),
        "cost": {
            "n_images": n_images,
            "n_features": model.maps_.shape[1],
            "n_dimensions": model.maps_.shape[2],
            "n_classes": len(model.classes_),
            "maps": [len(shares) for shares in history["map_usage"]],
            "violation_rate": history["violation_rate"],
        },
    }
    if full:
        record["maps_by_epoch"] = history["n_maps"]
        record["map_usage"] = history["map_usage"]
    return record


def _top_images(
    model: RankingModel, dataset: ZeroShotDataset, split: str, candidates: list[Any]
) -> list[list[dict[str, Any]]]:
    rows = dataset.rows(dataset.split(split).test)
    galleries = top_images(model, dataset.features[rows], candidates, n=N_TOP)
    names = dataset.images if dataset.images is not None else np.full(len(dataset.labels), "")
    return [
        [
            {
                "name": str(names[rows[image.row]]),
                "class": str(dataset.labels[rows[image.row]]),
                "named": str(image.named),
                "score": image.score,
            }
            for image in images
        ]
        for images in galleries
    ]
