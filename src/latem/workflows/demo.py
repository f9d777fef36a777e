"""The main job on the bundled data: learn from seen emoji, name unseen ones from their words.

Two models are trained on the 574 seen classes: one map (a bilinear ranking model) and LatEm with
several. Both then name drawings of 60 classes they have never seen, from the sentence vectors of
their names and keywords. Each model's step size was chosen on the split's val classes, among 0.1,
0.2, 0.3, 0.5 and 1 (mean of three seeds: one map 26.3 %, LatEm 28.7 % there).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from latem.core.run_folder import RunFolder
from latem.datasets import ZeroShotDataset, load_emoji
from latem.metrics import mean_class_accuracy, top_k_accuracy
from latem.models.latem import LatEm
from latem.models.sgd.loop import EpochInfo

SPLIT, EMBEDDING = "standard", "text"
N_EPOCHS, N_MAPS = 150, 8
LEARNING_RATES = {1: 0.5, N_MAPS: 1.0}
N_SHOWN = 12


@dataclass(frozen=True)
class Score:
    """A line of the demo's table: shares of images, averaged over classes."""

    name: str
    top_1: float
    top_5: float


@dataclass(frozen=True)
class Sample:
    """One drawing and what LatEm called it."""

    image: str
    true: str
    named: str
    rank: int  # place of the true class among all unseen ones, from 1

    @property
    def right(self) -> bool:
        """Whether the drawing was named correctly."""
        return self.true == self.named


@dataclass(frozen=True)
class DemoResult:
    """What the demo found."""

    dataset: ZeroShotDataset
    n_seen: int
    n_unseen: int
    n_training_images: int
    scores: list[Score]
    samples: list[Sample]


def run_demo(
    out: str | PathLike[str],
    *,
    seed: int = 0,
    n_epochs: int = N_EPOCHS,
    progress: Callable[[str, EpochInfo], None] | None = None,
) -> DemoResult:
    """Train, score, and leave a run folder.

    Parameters
    ----------
    out : path of the run folder
    seed : int
        Seed of both models and of the choice of samples.
    n_epochs : int
        Passes over the training drawings.
    progress : callable, optional
        Called with the model's name and an EpochInfo after each epoch.

    Returns
    -------
    DemoResult
    """
    folder = RunFolder(out)
    dataset = load_emoji()
    split = dataset.split(SPLIT)
    X, y = dataset.training(SPLIT)
    X_new, y_new = dataset.testing(SPLIT)
    unseen = np.array(split.test)
    models = {
        "one map": _model(dataset, 1, n_epochs, seed),
        f"LatEm, {N_MAPS} maps": _model(dataset, N_MAPS, n_epochs, seed),
    }
    scores = [Score("chance", 1 / len(unseen), 5 / len(unseen))]
    compatibility = np.empty(0)
    for name, model in models.items():

        def tell(info: EpochInfo, name: str = name) -> None:
            if progress is not None:
                progress(name, info)

        model.fit(X, y, callback=tell)
        compatibility = model.decision_function(X_new, unseen)
        named = unseen[compatibility.argmax(axis=1)]
        top_5 = top_k_accuracy(y_new, compatibility, unseen, k=5)
        scores.append(Score(name, mean_class_accuracy(y_new, named), top_5))

    everything = _samples(dataset, unseen, y_new, compatibility)
    rng = np.random.default_rng(seed)
    shown = [everything[i] for i in np.sort(rng.choice(len(everything), N_SHOWN, replace=False))]
    latent = models[f"LatEm, {N_MAPS} maps"]
    latent.save(folder.file("latem.safetensors"))
    models["one map"].save(folder.file("one_map.safetensors"))
    folder.write_table(
        "predictions.csv",
        ("image", "true", "named", "rank_of_true"),
        [(s.image, s.true, s.named, s.rank) for s in everything],
    )
    folder.write_text("report.md", _report(dataset, scores))
    folder.finish(
        {
            "command": "demo",
            "dataset": dataset.name,
            "split": SPLIT,
            "embedding": EMBEDDING,
            "seed": seed,
            "models": {name: _parameters(model) for name, model in models.items()},
            "metric": "mean per-class accuracy over the unseen classes",
            "scores": {s.name: {"top_1": s.top_1, "top_5": s.top_5} for s in scores},
        }
    )
    n_seen = len(split.train) + len(split.val)
    return DemoResult(dataset, n_seen, len(unseen), len(X), scores, shown)


def _model(dataset: ZeroShotDataset, n_maps: int, n_epochs: int, seed: int) -> LatEm:
    return LatEm(
        dataset.embeddings[EMBEDDING],
        n_maps=n_maps,
        learning_rate=LEARNING_RATES[n_maps],
        n_epochs=n_epochs,
        random_state=seed,
    )


def _parameters(model: LatEm) -> dict[str, Any]:
    return {k: v for k, v in model.get_params().items() if k != "class_embeddings"}


def _samples(
    dataset: ZeroShotDataset, unseen: np.ndarray, y: np.ndarray, scores: np.ndarray
) -> list[Sample]:
    assert dataset.images is not None
    images = dataset.images[dataset.rows(unseen)]
    column = np.searchsorted(unseen, y, sorter=np.argsort(unseen))
    column = np.argsort(unseen)[column]
    ranks = (scores > scores[np.arange(len(y)), column][:, None]).sum(axis=1) + 1
    named = unseen[scores.argmax(axis=1)]
    return [
        Sample(str(image), str(true), str(name), int(rank))
        for image, true, name, rank in zip(images, y, named, ranks, strict=True)
    ]


def _report(dataset: ZeroShotDataset, scores: list[Score]) -> str:
    lines = [
        f"# {dataset.name}: unseen classes named from words alone",
        "",
        "Mean per-class accuracy over the unseen classes, in percent.",
        "",
        "| | top-1 | top-5 |",
        "|---|---|---|",
        *(f"| {s.name} | {100 * s.top_1:.1f} | {100 * s.top_5:.1f} |" for s in scores),
        "",
        "Part of such a score is shared colour and drawing style: it is not accuracy on photos.",
    ]
    return "\n".join(lines) + "\n"
