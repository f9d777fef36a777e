"""From trainings to the numbers in a table.

A number may need trainings that are only known when others are done: K is chosen before the final
model is trained. `Cells` answers what it can and collects what is missing; the runner trains that
and asks again until nothing is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from latem.core.messages import first_few
from latem.datasets.dataset import ZeroShotDataset
from latem.experiments.fits import Fit, Outcome
from latem.experiments.store import Store
from latem.experiments.tables import STANDARD, PaperDataset, Recipe
from latem.metrics import mean_class_accuracy
from latem.models.ranking import RankingModel

STEPS = [0.001, 0.01, 0.1, 1.0]


@dataclass(frozen=True)
class Number:
    """A number of ours, with how it came about.

    Attributes
    ----------
    value : float or None
        None if it was skipped or is still missing.
    error : float or None
        Standard error over splits.
    note : str
        What was chosen, or why it was skipped.
    skipped : bool
    """

    value: float | None = None
    error: float | None = None
    note: str = ""
    skipped: bool = False


@dataclass
class Cells:
    """Numbers of ours, as far as their trainings are done.

    Parameters
    ----------
    datasets : dict of str to ZeroShotDataset
        Those that the user has, by the paper's key.
    paper : dict of str to PaperDataset
    recipes : dict of str to Recipe
    store : Store
    seed : int
    absent : dict of str to str
        Why each of the other datasets is not there.
    choose_step : set of str
        Datasets whose step size is chosen on val classes instead of being the paper's.
    """

    datasets: Mapping[str, ZeroShotDataset]
    paper: Mapping[str, PaperDataset]
    recipes: Mapping[str, Recipe]
    store: Store
    seed: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)
    choose_step: Collection[str] = ()
    missing: dict[Fit, None] = field(default_factory=dict)
    used: dict[Fit, None] = field(default_factory=dict)
    waiting: set[Any] = field(default_factory=set)

    def forget(self) -> None:
        """Begin a new round of questions."""
        self.missing, self.used, self.waiting = {}, {}, set()

    # -- numbers ------------------------------------------------------------------------------

    def accuracy(
        self, dataset: str, recipe: str, embeddings: tuple[str, ...], fusion: str, splits: str
    ) -> Number:
        """Mean per-class accuracy in percent, on one split or over five."""
        reason = self.lacking(dataset, embeddings)
        if reason:
            return Number(note=reason, skipped=True)
        names = self.splits(dataset) if splits == "five" else [STANDARD]
        values, notes = [], []
        for split in names:
            value, note = self._split_accuracy(dataset, recipe, embeddings, fusion, split)
            values.append(value)
            notes.append(note)
        if any(value is None for value in values):
            return Number()
        percent = [100 * float(value) for value in values if value is not None]
        if splits == "five":
            error = float(np.std(percent, ddof=1) / np.sqrt(len(percent)))
            return Number(float(np.mean(percent)), error, _joined(notes))
        return Number(percent[0], None, notes[0])

    def maps(self, dataset: str, recipe: str, embeddings: tuple[str, ...]) -> Number:
        """Number of maps of the final model on the standard split."""
        reason = self.lacking(dataset, embeddings)
        if reason:
            return Number(note=reason, skipped=True)
        outcome = self.final(dataset, recipe, embeddings, STANDARD)
        return Number() if outcome is None else Number(float(outcome.result["n_maps"]))

    def _split_accuracy(
        self, dataset: str, recipe: str, embeddings: tuple[str, ...], fusion: str, split: str
    ) -> tuple[float | None, str]:
        if fusion != "late":
            outcome = self.final(dataset, recipe, embeddings, split)
            return (None, "") if outcome is None else (outcome.result["accuracy"], _chosen(outcome))
        outcomes = [self.final(dataset, recipe, (name,), split) for name in embeddings]
        every = [outcome.scores for outcome in outcomes if outcome is not None]
        if len(every) < len(outcomes):
            return None, ""
        if split != STANDARD:
            raise ValueError("Scores are kept on the standard split only: fuse there.")
        scores = np.mean(np.stack(every), axis=0)  # type: ignore[arg-type]
        data = self.datasets[dataset]
        _, y = data.testing(split)
        candidates = np.array(sorted(set(y.tolist()) & set(data.split(split).test)))
        return mean_class_accuracy(y, candidates[scores.argmax(axis=1)]), ""

    # -- trainings ----------------------------------------------------------------------------

    def final(
        self, dataset: str, recipe: str, embeddings: tuple[str, ...], split: str, **given: Any
    ) -> Outcome | None:
        """The final model of a recipe on a split; None while trainings are missing."""
        plan = self.recipes[recipe]
        params = {**plan.params, **given}
        if params.get("learning_rate") == "dataset":
            step = self.learning_rate(dataset, params["n_epochs"])
            if step is None:
                self.waiting.add((dataset, recipe, embeddings, split))
                return None
            params["learning_rate"] = step
        for values, where in ((plan.tune, STANDARD), (plan.grid, split)):
            if values:
                best = self._choose(dataset, plan.model, embeddings, where, params, values)
                if best is None:
                    self.waiting.add((dataset, recipe, embeddings, split))
                    return None
                params |= best
        return self._outcome(dataset, plan.model, embeddings, split, "all", params)

    def learning_rate(self, dataset: str, n_epochs: int) -> float | None:
        """LatEm's step size: the paper's, or chosen once for the dataset (None while it is not).

        It is chosen on the val classes of the standard split, with attributes if there are any,
        and kept for all splits and embeddings, as in Sec. 5.
        """
        if dataset not in self.choose_step:
            return self.paper[dataset].learning_rate
        have = self.datasets[dataset].embeddings
        embedding = "att" if "att" in have else min(have)
        params = {"n_epochs": n_epochs}
        best = self._choose(
            dataset, "LatEm", (embedding,), STANDARD, params, {"learning_rate": STEPS}
        )
        return None if best is None else float(best["learning_rate"])

    def _choose(
        self,
        dataset: str,
        model: str,
        embeddings: tuple[str, ...],
        split: str,
        params: Mapping[str, Any],
        values: Mapping[str, Sequence[Any]],
    ) -> dict[str, Any] | None:
        """Values that score best on the split's val classes, the first of equals."""
        values = dict(values)
        epochs = values.pop("n_epochs", None) if _is_ranking(model) else None
        scored: list[tuple[float, dict[str, Any]]] = []
        complete = True
        for candidate in ParameterGrid(values):
            extra = {} if epochs is None else {"n_epochs": max(epochs), "watch": epochs}
            outcome = self._outcome(
                dataset, model, embeddings, split, "train", {**params, **candidate, **extra}
            )
            if outcome is None:
                complete = False
            elif epochs is None:
                scored.append((outcome.result["accuracy"], candidate))
            else:
                for n in epochs:
                    scored.append(
                        (outcome.result["by_epoch"][str(n)], {**candidate, "n_epochs": n})
                    )
        return max(scored, key=lambda pair: pair[0])[1] if complete else None

    def _outcome(
        self,
        dataset: str,
        model: str,
        embeddings: tuple[str, ...],
        split: str,
        part: str,
        params: Mapping[str, Any],
    ) -> Outcome | None:
        fit = Fit.of(
            dataset=dataset,
            split=split,
            part=part,
            embeddings=embeddings,
            model=model,
            params=params,
            seed=self.seed,
        )
        self.used[fit] = None
        outcome = self.store.get(fit)
        if outcome is None:
            self.missing[fit] = None
        return outcome

    # -- what there is ------------------------------------------------------------------------

    def lacking(self, dataset: str, embeddings: tuple[str, ...]) -> str:
        """Why a number cannot be made here, or an empty text."""
        if dataset not in self.datasets:
            return f"skipped: {self.absent.get(dataset, f'no {dataset} here')}"
        have = self.datasets[dataset].embeddings
        without = [name for name in embeddings if name not in have]
        if without:
            return f"skipped: no {' and '.join(without)} in {dataset}"
        for name in self.splits(dataset):
            split = self.datasets[dataset].split(name)
            for embedding in embeddings:
                table = have[embedding]
                lone = [c for c in split.train + split.val + split.test if c not in table]
                if lone:
                    return f"skipped: {embedding} of {dataset} does not describe {first_few(lone)}"
        return ""

    def splits(self, dataset: str) -> list[str]:
        """The standard split and four random ones."""
        others = sorted(name for name in self.datasets[dataset].splits if name.startswith("random"))
        return [STANDARD, *others[:4]]


def _is_ranking(model: str) -> bool:
    import latem

    return issubclass(getattr(latem, model), RankingModel)


def _chosen(outcome: Outcome) -> str:
    n_maps = outcome.result.get("n_maps")
    return "" if n_maps in (None, 1) else f"K = {n_maps}"


def _joined(notes: list[str]) -> str:
    numbers = [note.removeprefix("K = ") for note in notes if note]
    return f"K = {', '.join(numbers)}" if numbers else ""
