"""From trainings to the numbers in a table.

Each entry of a table rests on final models, and a final model on the trainings that chose its
parameters. `Cells.trainings` follows that chain as far as the finished trainings reach; the
numbers are made from finished trainings only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from latem.core.messages import first_few
from latem.core.threads import single_threaded_blas
from latem.datasets.dataset import ZeroShotDataset
from latem.experiments.fits import Fit, Outcome
from latem.experiments.five_splits import five_names
from latem.experiments.store import Store
from latem.experiments.tables import CHOSEN, FIVE, STANDARD, Entry, Protocols
from latem.models import model_rows
from latem.models.ranking import RankingModel
from latem.models.weights import HeldOutScores, best_weights, checked_weights

STEPS = [0.001, 0.01, 0.1, 1.0]
WEIGHT_STEPS = 10  # weights of combined models are multiples of a tenth


class NotTrainedError(LookupError):
    """A result was asked for before its training was done."""


@dataclass(frozen=True)
class Number:
    """One of our numbers, and how it was made.

    Attributes
    ----------
    value : float or None
        None if it was skipped.
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


@dataclass(frozen=True)
class Wanted:
    """A final model: what a recipe gives on one split of a dataset.

    Attributes
    ----------
    dataset, recipe : str
    embeddings : tuple of str
        Several are joined.
    split : str
    n_maps : int or None
        Number of maps, if it is prescribed.
    part : {"all", "train"}
        Which classes it learns from: train and val classes, or the train classes alone, so that
        val classes can tell how much it should count for beside others.
    """

    dataset: str
    recipe: str
    embeddings: tuple[str, ...]
    split: str = STANDARD
    n_maps: int | None = None
    part: str = "all"

    def __str__(self) -> str:
        what = f"{self.recipe} on {self.dataset} {'+'.join(self.embeddings)}, {self.split}"
        return what + (", without val classes" if self.part == "train" else "")


@dataclass(frozen=True)
class Choice:
    """Parameters chosen on val classes.

    Attributes
    ----------
    fits : tuple of Fit
        Trainings to choose among.
    best : dict or None
        What was chosen; None until all of them are done.
    """

    fits: tuple[Fit, ...]
    best: Mapping[str, Any] | None


@dataclass(frozen=True)
class Trainings:
    """Trainings behind a final model, as far as they are known.

    Attributes
    ----------
    fits : tuple of Fit
        Those that choose its parameters, and that of the model itself once it is known.
    final : Fit or None
        That of the model itself; None until its parameters are chosen.
    """

    fits: tuple[Fit, ...]
    final: Fit | None = None


@dataclass(frozen=True)
class Cells:
    """Our numbers, and the trainings they rest on. Asking changes nothing.

    Parameters
    ----------
    datasets : dict of str to ZeroShotDataset
        The user's datasets, by the paper's key.
    protocols : Protocols
    store : Store
        The finished trainings.
    seed : int
    absent : dict of str to str
        Why each of the paper's other datasets is missing.
    choose_step : set of str
        Datasets whose step size is chosen on val classes instead of being the paper's.
    other_features : set of str
        Datasets whose features are not the paper's, so that its numbers are not theirs to reach.
    """

    datasets: Mapping[str, ZeroShotDataset]
    protocols: Protocols
    store: Store
    seed: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)
    choose_step: Collection[str] = ()
    other_features: Collection[str] = ()

    # -- numbers ------------------------------------------------------------------------------

    def accuracy(self, entry: Entry) -> Number:
        """Mean per-class accuracy in percent, on one split or over five."""
        reason = self.lacking(entry.dataset, entry.embeddings)
        if reason:
            return Number(note=reason, skipped=True)
        if entry.combines:
            return self._combined(entry)
        outcomes = [self.final(wanted) for wanted in self.models(entry)]
        percent = [100 * float(outcome.result["accuracy"]) for outcome in outcomes]
        notes = [_chosen(outcome) for outcome in outcomes]
        if entry.splits == FIVE:
            error = float(np.std(percent, ddof=1) / np.sqrt(len(percent)))
            return Number(float(np.mean(percent)), error, _joined(notes))
        return Number(percent[0], None, notes[0])

    def maps(self, entry: Entry) -> Number:
        """Number of maps of the final model on the standard split."""
        reason = self.lacking(entry.dataset, entry.embeddings)
        if reason:
            return Number(note=reason, skipped=True)
        (wanted,) = self.models(entry)
        return Number(float(self.final(wanted).result["n_maps"]))

    def final(self, wanted: Wanted) -> Outcome:
        """Outcome of a final model; an error if it, or a choice before it, is not trained yet."""
        fit = self.trainings(wanted).final
        outcome = None if fit is None else self.store.get(fit)
        if outcome is None:
            raise NotTrainedError(f"{wanted} is not trained yet; train what `plan` names first.")
        return outcome

    def _combined(self, entry: Entry) -> Number:
        """Accuracy of the summed scores of one model per embedding, on the standard split.

        F(x, y) = Σ_k α_k F_k(x, y) with Σ_k α_k = 1, as in the paper by which Table 3 goes (Akata
        et al., "Evaluation of output embeddings", CVPR 2015): the weights α are chosen among all
        multiples of a tenth by the accuracy on the val classes, which the models of the choice have
        not seen, and used with the models that have learned from train and val classes. Which one
        of equally good weights counts: see `latem.models.weights.best_weights`. Or all α_k are
        alike, which is the mean.
        """
        finals = self._judged([self.final(wanted) for wanted in self.models(entry)], entry, "all")
        weights, note = checked_weights(None, len(entry.embeddings), "a mean"), ""
        with single_threaded_blas():
            if entry.fusion == CHOSEN:
                held_out = [self.final(wanted) for wanted in self.held_out(entry)]
                judged = self._judged(held_out, entry, "train")
                weights = best_weights([judged], steps=WEIGHT_STEPS)
                shares = zip(entry.embeddings, weights, strict=True)
                note = "weights " + ", ".join(f"{name} {share:.1f}" for name, share in shares)
            return Number(100 * finals.accuracy(weights), None, note)

    def _judged(self, outcomes: Sequence[Outcome], entry: Entry, part: str) -> HeldOutScores:
        """Kept scores of several models, with the images' classes, on the standard split."""
        data = self.datasets[entry.dataset]
        classes = data.split(STANDARD).test if part == "all" else data.split(STANDARD).val
        y = (data.testing if part == "all" else data.validation)(STANDARD)[1]
        candidates = np.array(sorted(set(y.tolist()) & set(classes)))
        scores = np.stack([outcome.scores for outcome in outcomes])  # type: ignore[misc]
        return HeldOutScores(scores, y, candidates)

    # -- trainings ----------------------------------------------------------------------------

    def models(self, entry: Entry) -> list[Wanted]:
        """Final models that an entry is made from: one per split, or one per combined embedding."""
        splits = self.splits(entry.dataset) if entry.splits == FIVE else [STANDARD]
        tables: list[tuple[str, ...]] = [entry.embeddings]
        if entry.combines:
            tables = [(name,) for name in entry.embeddings]
        return [
            Wanted(entry.dataset, entry.recipe, embeddings, split, entry.n_maps)
            for split in splits
            for embeddings in tables
        ]

    def held_out(self, entry: Entry) -> list[Wanted]:
        """The same models without val classes, for choosing weights; none if none are chosen."""
        if entry.fusion != CHOSEN:
            return []
        return [replace(wanted, part="train") for wanted in self.models(entry)]

    def trainings(self, wanted: Wanted) -> Trainings:
        """Trainings behind a final model, as far as the finished ones determine them."""
        recipe = self.protocols.recipes[wanted.recipe]
        params = dict(recipe.params)
        if wanted.n_maps is not None:
            params["n_maps"] = wanted.n_maps
        fits: tuple[Fit, ...] = ()
        if params.get("learning_rate") == "dataset":
            choice = self._step(wanted.dataset, params["n_epochs"])
            fits += choice.fits
            if choice.best is None:
                return Trainings(fits)
            params |= choice.best
        for values, split in ((recipe.tune, STANDARD), (recipe.grid, wanted.split)):
            if values:
                where = wanted.dataset, recipe.model, wanted.embeddings, split
                choice = self._choose(*where, params, values)
                fits += choice.fits
                if choice.best is None:
                    return Trainings(fits)
                params |= choice.best
        where = wanted.dataset, recipe.model, wanted.embeddings, wanted.split
        final = self._fit(*where, wanted.part, params)
        return Trainings((*fits, final), final)

    def learning_rate(self, dataset: str, n_epochs: int) -> float | None:
        """LatEm's step size: the paper's, or chosen once for the dataset; None until it is."""
        best = self._step(dataset, n_epochs).best
        return None if best is None else float(best["learning_rate"])

    def _step(self, dataset: str, n_epochs: int) -> Choice:
        """LatEm's step size for a dataset.

        If it is not the paper's, it is chosen on the val classes of the standard split, with
        attributes if there are any, and kept for all splits and embeddings, as in Sec. 5.
        """
        if dataset not in self.choose_step:
            return Choice((), {"learning_rate": self.protocols.datasets[dataset].learning_rate})
        have = self.datasets[dataset].embeddings
        embedding = "att" if "att" in have else min(have)
        where = dataset, "LatEm", (embedding,), STANDARD
        return self._choose(*where, {"n_epochs": n_epochs}, {"learning_rate": STEPS})

    def _choose(
        self,
        dataset: str,
        model: str,
        embeddings: tuple[str, ...],
        split: str,
        params: Mapping[str, Any],
        values: Mapping[str, Sequence[Any]],
    ) -> Choice:
        """Values that score best on the split's val classes; of equals, the first."""
        values = dict(values)
        epochs = values.pop("n_epochs", None) if _is_ranking(model) else None
        extra = {} if epochs is None else {"n_epochs": max(epochs), "watch": epochs}
        candidates = list(ParameterGrid(values))
        fits = tuple(
            self._fit(dataset, model, embeddings, split, "train", {**params, **candidate, **extra})
            for candidate in candidates
        )
        scored: list[tuple[float, dict[str, Any]]] = []
        for candidate, fit in zip(candidates, fits, strict=True):
            outcome = self.store.get(fit)
            if outcome is None:
                return Choice(fits, None)
            if epochs is None:
                scored.append((outcome.result["accuracy"], candidate))
            else:
                by_epoch = outcome.result["by_epoch"]
                scored += [(by_epoch[str(n)], {**candidate, "n_epochs": n}) for n in epochs]
        return Choice(fits, max(scored, key=lambda pair: pair[0])[1])

    def _fit(
        self,
        dataset: str,
        model: str,
        embeddings: tuple[str, ...],
        split: str,
        part: str,
        params: Mapping[str, Any],
    ) -> Fit:
        return Fit.of(
            dataset=dataset,
            split=split,
            part=part,
            embeddings=embeddings,
            model=model,
            params=params,
            seed=self.seed,
        )

    # -- what there is ------------------------------------------------------------------------

    def lacking(self, dataset: str, embeddings: tuple[str, ...]) -> str:
        """Why a number cannot be made here; empty if it can."""
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
                undescribed = [c for c in split.train + split.val + split.test if c not in table]
                if undescribed:
                    names = first_few(undescribed)
                    return f"skipped: {embedding} of {dataset} does not describe {names}"
        return ""

    def splits(self, dataset: str) -> list[str]:
        """The standard split and four random ones."""
        return five_names(self.datasets[dataset])


def _is_ranking(model: str) -> bool:
    return issubclass(model_rows.find(model).load(), RankingModel)


def _chosen(outcome: Outcome) -> str:
    n_maps = outcome.result.get("n_maps")
    return "" if n_maps in (None, 1) else f"K = {n_maps}"


def _joined(notes: list[str]) -> str:
    numbers = [note.removeprefix("K = ") for note in notes if note]
    return f"K = {', '.join(numbers)}" if numbers else ""
