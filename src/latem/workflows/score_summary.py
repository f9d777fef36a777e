"""How good a model is on a dataset, as plain data: what the explorer's page of scores shows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from latem.embeddings.table_checks import as_python
from latem.evaluation import Evaluation, Scored, evaluate, obstacles
from latem.evaluation.result import GeneralizedEvaluation
from latem.metrics.reliability import ReliabilityCurve, reliability_curve
from latem.report.names import label
from latem.workflows.explore import Explorer

_N_CONFUSIONS = 20
_N_POINTS = 400  # of a curve that are told


def score_summary(explorer: Explorer) -> dict[str, Any]:
    """Measure a model on all that the split of its dataset allows.

    Parameters
    ----------
    explorer : Explorer
        With a dataset. Its model is left as it is.

    Returns
    -------
    dict
        `n_images`, `n_classes`, `top_1`, `top_5`, `chance`, `per_class`, `confusions`,
        `reliability`, `verdicts`, `together` (the seen–unseen curve), each None where the split
        does not allow it, and `missing`, which says why.
    """
    dataset, split = explorer.dataset, explorer.split
    if dataset is None:
        raise ValueError(
            "Without a dataset there is nothing to measure: start the server with one."
        )
    model = copy.copy(explorer.model)  # a temperature that is fitted here stays here
    missing = obstacles(model, dataset, split)
    result = evaluate(
        model,
        dataset,
        split,
        generalized=not missing["generalized"],
        calibrate=not missing["calibrate"],
    )
    assert result.scored is not None
    return {
        "n_images": result.n_images,
        "n_classes": result.n_classes,
        "top_1": result.top_1,
        "top_5": result.top_5,
        "chance": 1 / result.n_classes,
        "per_class": _per_class(explorer, result),
        "confusions": _confusions(result.scored),
        "reliability": _reliability(result, result.scored),
        "verdicts": None if result.probabilities is None else result.probabilities.verdicts,
        "together": None if result.generalized is None else _together(result.generalized),
        "missing": missing,
    }


def _per_class(explorer: Explorer, result: Evaluation) -> list[dict[str, Any]]:
    lines = []
    for name, row in result.to_frame().iterrows():
        mistaken = row["mistaken_for"]
        lines.append(
            {
                **{"class": as_python(name), **explorer.card(name)},
                "accuracy": float(row["accuracy"]),
                "images": int(row["images"]),
                "named": int(row["named"]),
                "mistaken_for": None if mistaken is None else as_python(mistaken),
                "mistaken_label": "" if mistaken is None else label(mistaken),
                "mistakes": int(row["mistakes"]),
            }
        )
    return lines


def _confusions(answers: Scored) -> list[dict[str, Any]]:
    frame = answers.top_confusions(_N_CONFUSIONS)
    return [
        {
            **{"true": as_python(true), "named": as_python(named)},
            **{"true_label": label(true), "named_label": label(named)},
            **{"count": int(count), "of": int(of)},
        }
        for true, named, count, of in frame[["true", "named", "count", "of"]].to_numpy().tolist()
    ]


def _reliability(result: Evaluation, answers: Scored) -> dict[str, Any] | None:
    if result.probabilities is None:
        return None
    found = result.probabilities.test
    before, after = (
        reliability_curve(answers.confidence(temperature), answers.right)
        for temperature in (1.0, found.temperature)
    )
    return {
        "before": _bins(before),
        "after": _bins(after),
        "ece_before": found.ece_before,
        "ece_after": found.ece_after,
        "temperature": found.temperature,
    }


def _bins(curve: ReliabilityCurve) -> list[dict[str, Any]]:
    columns = (curve.confidence.tolist(), curve.accuracy.tolist(), curve.counts.tolist())
    return [
        {"confidence": sure, "accuracy": right, "count": int(count)}
        for sure, right, count in zip(*columns, strict=True)
    ]


def _together(found: GeneralizedEvaluation) -> dict[str, Any]:
    curve = found.curve
    assert curve is not None
    inner = np.flatnonzero(np.isfinite(curve.gammas))
    told = inner[np.unique(np.linspace(0, len(inner) - 1, _N_POINTS).round().astype(int))]
    scores = {
        name: {"seen": one.seen, "unseen": one.unseen, "harmonic": one.harmonic}
        for name, one in (("plain", found.plain), ("stacked", found.stacked))
    }
    return {
        "gammas": curve.gammas[told].tolist(),
        "seen": curve.seen[told].tolist(),
        "unseen": curve.unseen[told].tolist(),
        "gamma": found.gamma,
        "ausuc": found.ausuc,
        "n_seen": found.n_seen,
        "n_unseen": found.n_unseen,
        **scores,
    }
