"""All models on the real CUB birds, attributes, standard split, in one table.

Hyper-parameters are chosen on the 50 val classes only; the final model learns from train and val
classes and names images of the 50 unseen ones. Beside each figure are those of the paper and of
"Zero-shot learning: the good, the bad and the ugly" (TPAMI 2019; ResNet-101 features, other val
classes). Needs the dataset folder `cub` (set LATEM_DATA to the folder that holds it).

    python benchmarks/baselines_cub.py                   # all of them
    python benchmarks/baselines_cub.py SAE "EXEM, 1NN"   # some; other kept figures stay
"""

import json
import sys
import warnings

import numpy as np
from machine import RESULTS, keep, real_dataset, show
from sklearn.exceptions import ConvergenceWarning

import latem
from latem import ESZSLCV, HeldOutSearch, LatEm, read_folder

GAMMAS = 10.0 ** np.arange(-3, 6)
PUBLISHED = {  # the paper's, TPAMI's
    "LatEm, K chosen": (45.5, 49.4),
    "LatEm, one map": (None, None),
    "SJE": (50.1, 55.3),
    "SJE of 2015": (50.1, 55.3),
    "SJE, four maps": (None, None),
    "ALE": (None, 53.2),
    "DeViSE": (None, 53.2),
    "WSABIE": (None, None),
    "ESZSL* (labels 0, 1)": (47.1, 55.1),
    "ESZSL (labels -1, 1)": (30.5, None),
    "DAP": (None, 37.5),
    "IAP": (None, 27.1),
    "CMT": (29.4, 37.3),
    "SemanticOutputCodes": (None, None),
    "ConSE": (None, 36.7),
    "CCA": (None, None),
    "SAE": (None, None),
    "SAE, semantic": (None, None),
    "EXEM": (None, None),
    "EXEM, 1NN": (None, None),
    "SynC": (None, None),
    "SynC, structured": (None, None),
    "GFZSL": (None, None),
}


def models(table, val):
    """Unfitted models that choose their own parameters on the val classes."""

    def search(name, grid=None, **params):
        model = getattr(latem, name)(table, **params)
        return HeldOutSearch(model, grid, cv=list(val))

    sgd = {"random_state": 0}
    eszsl = {"cv": list(val), "gammas": GAMMAS, "feature_scaling": None}
    few = {"learning_rate": (0.01, 0.1, 1.0), "n_epochs": (5, 10, 20, 50, 100, 150)}
    return {
        "LatEm, K chosen": search("LatEm", {"n_maps": (2, 4, 6, 8, 10)}, **sgd),
        "LatEm, one map": LatEm(table, n_maps=1, **sgd),
        "SJE": search("SJE", few, **sgd),
        "SJE of 2015": search("SJE", few, normalize_projection=True, shuffle=False, **sgd),
        "SJE, four maps": search("SJE", few, n_maps=4, **sgd),
        "ALE": search("ALE", **sgd),
        "DeViSE": search("DeViSE", **sgd),
        "WSABIE": search("WSABIE", **sgd),
        "ESZSL* (labels 0, 1)": ESZSLCV(table, labels="01", **eszsl),
        "ESZSL (labels -1, 1)": ESZSLCV(table, labels="±1", **eszsl),
        "DAP": search("DAP"),
        "IAP": search("IAP"),
        "CMT": search("CMT", **sgd),
        "SemanticOutputCodes": search("SemanticOutputCodes"),
        "ConSE": search("ConSE"),
        "CCA": search("CCA"),
        "SAE": search("SAE"),
        "SAE, semantic": search("SAE", direction="semantic"),
        "EXEM": search("EXEM"),
        "EXEM, 1NN": search("EXEM", neighbour="1NN"),
        "SynC": search("SynC"),
        "SynC, structured": search("SynC", loss="structured"),
        "GFZSL": search("GFZSL"),
    }


def chosen(model):
    """What was chosen, in words."""
    if isinstance(model, ESZSLCV):
        return {"gamma": model.gamma_, "lam": model.lam_}
    return getattr(model, "best_params_", {})


def earlier():
    """Figures that were kept before."""
    path = RESULTS / "baselines_cub.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def main(names=()):
    if odd := [name for name in names if name not in PUBLISHED]:
        raise SystemExit(f"There are no models {odd}; there are {list(PUBLISHED)}.")
    folder = real_dataset("cub")
    if folder is None:
        return
    dataset = read_folder(folder)
    X, y = dataset.training("standard")
    rows, kept = [], earlier() if names else {}
    for name, model in models(dataset.embeddings["att"], dataset.split("standard").val).items():
        if names and name not in names:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        accuracy = 100 * model.score(*dataset.testing("standard"))
        paper, later = PUBLISHED[name]
        params = chosen(model)
        kept[name] = {"accuracy": accuracy, "paper": paper, "tpami2019": later, "chosen": params}
        text = ", ".join(f"{key} {value}" for key, value in params.items())
        print(f"{name}: {accuracy:.1f} ({text})", flush=True)
        rows.append((name, f"{accuracy:.1f}", paper or "", later or "", text))
    show(
        "CUB, standard split, att: mean per-class accuracy on 50 unseen classes (%)",
        ("model", "ours", "the paper", "TPAMI 2019", "chosen on val classes"),
        rows,
    )
    keep("baselines_cub", kept)


if __name__ == "__main__":
    main(sys.argv[1:])
