"""The main job on the bundled data: learn from seen emoji, name unseen ones from their words.

Four models are trained on the 574 seen classes: one map (a bilinear ranking model), LatEm with
several, LatEm's tuned preset, and the committee that `latem train` makes. All of them then name
drawings of 60 classes they have never seen, from the sentence vectors of their names and keywords.
What the committee answers, and why, becomes a page.

The step sizes of the first two were chosen on the split's val classes, among 0.1, 0.2, 0.3, 0.5
and 1 (mean of three seeds: one map 26.3 %, LatEm 28.7 % there). The other two choose their
parameters on the same classes in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from latem.core.parallel import run_tasks
from latem.core.run_folder import RunFolder
from latem.datasets import ZeroShotDataset, load_emoji
from latem.evaluation import Scored
from latem.metrics import mean_class_accuracy, top_k_accuracy
from latem.models.latem import LatEm
from latem.models.sgd.loop import EpochInfo
from latem.report.demo_page import write_demo
from latem.workflows.demo_answers import summary_of
from latem.workflows.train import train_model

SPLIT, EMBEDDING, PAGE = "standard", "text", "index.html"
N_EPOCHS, N_MAPS = 150, 8
LEARNING_RATES = {1: 0.5, N_MAPS: 1.0}
N_SHOWN = 12
ONE_MAP, LATENT, TUNED, COMMITTEE = (
    *("one map", f"LatEm, {N_MAPS} maps", "LatEm, tuned preset", "committee"),
)
FILES = {
    ONE_MAP: "one_map.safetensors",
    LATENT: "latem.safetensors",
    TUNED: "tuned.safetensors",
    COMMITTEE: "committee.safetensors",
}
Progress = Callable[[str, float, float], None]


@dataclass(frozen=True)
class Score:
    """A line of the demo's table: shares of images, averaged over classes."""

    name: str
    top_1: float
    top_5: float


@dataclass(frozen=True)
class Sample:
    """One drawing and what the committee called it."""

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
    dataset: ZeroShotDataset | None = None,
    seed: int = 0,
    n_epochs: int = N_EPOCHS,
    progress: Progress | None = None,
) -> DemoResult:
    """Train, score, and leave a run folder with a page.

    Parameters
    ----------
    out : path of the run folder
    dataset : ZeroShotDataset, optional
        With names of images, a class table "text" and a split "standard"; by default the bundled
        emoji.
    seed : int
        Seed of all models and of the choice of samples.
    n_epochs : int
        Passes over the training drawings of one map and of LatEm with several.
    progress : callable, optional
        Called with a title, the steps done and how many there are.

    Returns
    -------
    DemoResult
    """
    with RunFolder(out) as folder:
        emoji = load_emoji() if dataset is None else dataset
        return _learn_and_name(folder, emoji, seed, n_epochs, progress or _tell_nobody)


def _learn_and_name(
    folder: RunFolder, dataset: ZeroShotDataset, seed: int, n_epochs: int, progress: Progress
) -> DemoResult:
    split = dataset.split(SPLIT)
    unseen, rows = np.array(split.test), dataset.rows(split.test)
    X_new, y_new = dataset.testing(SPLIT)
    names = list(FILES)[::-1]  # the longest training first, so that two cores end together
    trained = run_tasks(_trained, names, shared=(dataset, n_epochs, seed, progress))
    found = dict(zip(names, trained, strict=True))
    models = {name: found[name] for name in FILES}
    scores = [Score("chance", 1 / len(unseen), min(5 / len(unseen), 1.0))]
    for name, model in models.items():
        compatibility = model.decision_function(X_new, unseen)
        named = unseen[compatibility.argmax(axis=1)]
        top_5 = top_k_accuracy(y_new, compatibility, unseen, k=min(5, len(unseen)))
        scores.append(Score(name, mean_class_accuracy(y_new, named), top_5))
        model.save(folder.file(FILES[name]))

    answered = Scored(rows, y_new, unseen, compatibility)
    everything = _samples(dataset, answered)
    rng = np.random.default_rng(seed)
    n_shown = min(N_SHOWN, len(everything))
    shown = [everything[i] for i in np.sort(rng.choice(len(everything), n_shown, replace=False))]
    folder.write_table(
        "predictions.csv",
        ("image", "true", "named", "rank_of_true"),
        [(s.image, s.true, s.named, s.rank) for s in everything],
    )
    folder.write_text("report.md", _report(dataset, scores))
    n_training = len(dataset.training(SPLIT)[0])
    n_seen = len(split.train) + len(split.val)
    summary = summary_of(
        models[COMMITTEE],
        dataset,
        answered,
        n_seen=n_seen,
        n_training_images=n_training,
        scores={s.name: (s.top_1, s.top_5) for s in scores},
        settings={"dataset": dataset.name, "split": SPLIT, "class table": EMBEDDING, "seed": seed},
        done=lambda done, total: progress("explaining answers", done, total),
    )
    write_demo(summary, folder.file(PAGE))
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
    return DemoResult(dataset, n_seen, len(unseen), n_training, scores, shown)


def _tell_nobody(title: str, done: float, total: float) -> None:
    pass


def _trained(
    name: str, dataset: ZeroShotDataset, n_epochs: int, seed: int, progress: Progress
) -> Any:
    """One of the models, fitted to the seen classes."""
    title = f"training {name}"
    if name in (TUNED, COMMITTEE):
        progress(title, 0, 1)
        kind = "LatEm" if name == TUNED else None
        model = train_model(
            dataset, EMBEDDING, kind=kind, split=SPLIT, calibrate=name == COMMITTEE, seed=seed
        ).model
        progress(title, 1, 1)
        return model
    n_maps = 1 if name == ONE_MAP else N_MAPS
    model = LatEm(
        dataset.embeddings[EMBEDDING],
        n_maps=n_maps,
        learning_rate=LEARNING_RATES[n_maps],
        n_epochs=n_epochs,
        random_state=seed,
    )

    def tell(info: EpochInfo) -> None:
        progress(title, info.epoch, info.n_epochs)

    return model.fit(*dataset.training(SPLIT), callback=tell)


def _parameters(model: Any) -> dict[str, Any]:
    """What a model was trained with; of a committee, what was chosen for its members."""
    own = model.get_params(deep=False)
    chosen = model.measured_.chosen if hasattr(model, "measured_") else {}
    return {k: v for k, v in own.items() if k not in ("class_embeddings", "members")} | chosen


def _samples(dataset: ZeroShotDataset, answered: Scored) -> list[Sample]:
    assert dataset.images is not None
    images = dataset.images[answered.rows]
    lines = zip(images, answered.y, answered.named, answered.ranks, strict=True)
    return [
        Sample(str(image), str(true), str(name), int(rank)) for image, true, name, rank in lines
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
