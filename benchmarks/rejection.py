"""Which number tells pictures of the candidates from all others, and what the verdicts are worth.

First table, without any test class: a twin of the tuned model has never seen the val classes. Half
of them are the candidates, the other half and images of seen classes that were set aside are
outsiders of the same kind; images of other sets with the same encoder are outsiders of another
kind. AUROC of each statistic, mean of the sets, and the share of the candidates' own images that is
named if 5 % of the outsiders of the same kind are.

Second table: the model as `latem.train` makes it, on test classes, half of them candidates.

    python benchmarks/rejection.py [--pictures FOLDER]

FOLDER holds pictures of other things than birds, such as CIFAR-10's from examples/cifar.py.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
from machine import DATA, keep, real_dataset, show
from scipy.special import logsumexp, softmax
from sklearn.metrics import roc_auc_score

import latem
from latem.core.arrays import unit_rows
from latem.datasets.picture_files import pictures_in
from latem.features.embed import embed_pictures
from latem.features.encoders import load_encoder
from latem.metrics import expected_calibration_error
from latem.metrics.calibration import class_codes
from latem.metrics.open_set import Kinship, membership
from latem.models.answers import VERDICTS
from latem.selection.calibration import HeldOutTwin

SETS = [  # set, class table, sets of other things with the same encoder
    ("cub", "att", ("dogs", "animals")),
    ("cub", "glo", ("dogs", "animals")),
    ("animals", "att", ("dogs", "cub")),
    ("dogs", "cn", ("cub", "animals")),
    ("emoji", "text", ("birds",)),
    ("birds", "att", ("emoji", "pictures")),
]
MOST = 1500  # images of each other set
NEIGHBOURS, KEPT = 5, 4000


def datasets(work, pictures):
    """All sets that are there, by name; the birds are embedded, and so are the pictures."""
    names = {name for one, _, others in SETS for name in (one, *others)} - {"birds", "pictures"}
    found = {name: latem.read_folder(f) for name in names if (f := real_dataset(name)) is not None}
    photos = DATA / "cub_photos"
    if photos.is_dir():
        unseen = (photos / "unseen.txt").read_text(encoding="utf-8").split("\n")
        table = latem.as_class_embeddings(photos / "traits.csv")
        embed_pictures(
            photos / "images",
            work / "birds",
            tables={"att": table},
            encoder=load_encoder("efficientnet-lite0"),
            unseen=[name for name in unseen if name],
        )
        found["birds"] = latem.read_folder(work / "birds")
    features = {name: dataset.features for name, dataset in found.items()}
    if pictures is not None:
        paths, _ = pictures_in([pictures])
        few = np.random.default_rng(0).permutation(len(paths))[:600]
        encoder = load_encoder("efficientnet-lite0")
        features["pictures"] = encoder.encode([paths[i] for i in sorted(few)])
    return found, features


def some(X):
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST])
    return np.asarray(X[rows], np.float32)


def statistics(model, X, candidates, temperature, penalty, learned):
    """Every statistic of some images; large where an image is one of the candidates."""
    scores, rivals = (
        np.asarray(model.class_scores(X, names), np.float64)
        for names in (candidates, model.classes_.tolist())
    )
    top, ordered = scores.max(axis=1), np.sort(scores, axis=1)
    centred = unit_rows(np.asarray(X, np.float32) - learned["centre"])
    nearest = np.sort(centred @ learned["images"].T, axis=1)[:, -NEIGHBOURS:].mean(axis=1)
    both = np.hstack([scores, rivals - penalty])
    return {
        "largest probability": softmax(scores / temperature, axis=1).max(axis=1),
        "probability among seen classes too": softmax(both / temperature, axis=1)[
            :, : len(candidates)
        ].max(axis=1),
        "top score": top,
        "margin to the second": ordered[:, -1] - ordered[:, -2],
        "energy": logsumexp(scores / temperature, axis=1),
        "top score in spreads over the classes": (top - both.mean(axis=1)) / both.std(axis=1),
        "top score less that of seen classes": top - rivals.max(axis=1),
        "membership": membership(scores, rivals - penalty, temperature),
        "kinship (nearest class mean)": learned["kinship"](X),
        "nearest training images": nearest,
    }


def on_held_out(name, embedding, others, found, features):
    """AUROC of all statistics by sort of outsiders, and coverage."""
    dataset = found[name]
    X, y = dataset.training()
    X = np.asarray(X, np.float32)
    val = list(dataset.split().val)
    search = latem.LatEmCV(dataset.embeddings[embedding], cv=val, random_state=0).fit(X, y)
    out = np.isin(y, val)
    twin = HeldOutTwin(search.best_estimator_, X, y, out, share=0.2, seed=0)
    order = np.random.default_rng(1).permutation(len(twin.held_out))
    candidates = twin.held_out[order[: len(order) // 2]].tolist()
    rest = ~out
    aside = np.flatnonzero(rest)[twin.aside]
    learned_rows = np.flatnonzero(rest)[~twin.aside]
    kinship = Kinship.of(X[learned_rows], y[learned_rows])
    few = np.random.default_rng(0).permutation(learned_rows)[:KEPT]
    learned = {
        "kinship": kinship,
        "centre": kinship.centre,
        "images": unit_rows(X[few] - kinship.centre),
    }
    how = (candidates, twin.temperature(), twin.penalty(), learned)
    own = np.isin(y, candidates)
    groups = {
        "other held-out classes": X[out & ~own],
        "seen classes": X[aside],
        **{o: some(features[o]) for o in others if o in features},
    }
    inside = statistics(twin.model, X[own], *how)
    outside = {key: statistics(twin.model, part, *how) for key, part in groups.items()}
    result = {}
    for statistic, values in inside.items():
        area = {
            key: roc_auc_score(
                np.repeat([1, 0], [len(values), len(part[statistic])]),
                np.concatenate([values, part[statistic]]),
            )
            for key, part in outside.items()
        }
        near = [outside[key][statistic] for key in ("other held-out classes", "seen classes")]
        n = min(map(len, near))
        rng = np.random.default_rng(2)
        bound = np.quantile(np.concatenate([rng.permutation(part)[:n] for part in near]), 0.95)
        result[statistic] = {
            "other held-out classes": area["other held-out classes"],
            "seen classes": area["seen classes"],
            "other things": float(np.mean([area[o] for o in list(groups)[2:]])),
            "coverage": float(np.mean(values > bound)),
        }
    return result


def on_test(name, embedding, others, found, features):
    """Verdicts of a trained model on test classes, and calibration errors."""
    dataset = found[name]
    model = latem.train(dataset, embedding)
    X, y = dataset.testing()
    test = np.array(dataset.split().test)
    codes = class_codes(y, test)
    error = {
        key: expected_calibration_error(p, codes)
        for key, p in (
            ("before", softmax(model.class_scores(X, test), axis=1)),
            ("after", model.predict_proba(X, test)),
        )
    }
    counts = {}
    for draw in range(5):
        candidates = np.random.default_rng(draw).permutation(test)[: len(test) // 2].tolist()
        own = np.isin(y, candidates)
        groups = {"own": X[own], "other unseen classes": X[~own]}
        groups |= {o: some(features[o]) for o in others if o in features}
        for key, part in groups.items():
            answers = model.answer(part, candidates, top=1)
            shares = [answers.count(verdict) / len(answers) for verdict in VERDICTS]
            counts.setdefault(key, []).append(shares)
    verdicts = {key: np.mean(shares, axis=0).tolist() for key, shares in counts.items()}
    return {"calibration error": error, "verdicts": verdicts}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pictures", type=Path, help="folder of pictures of other things")
    pictures = parser.parse_args().pictures
    warnings.filterwarnings("ignore", category=latem.UncalibratedWarning)
    with tempfile.TemporaryDirectory() as work:
        found, features = datasets(Path(work), pictures)
        jobs = [job for job in SETS if job[0] in found and any(o in features for o in job[2])]
        if not jobs:
            print("No data: the sets are not beside this repository.")
            return
        chosen = {" ".join(job[:2]): on_held_out(*job, found, features) for job in jobs}
        tested = {" ".join(job[:2]): on_test(*job, found, features) for job in jobs}
    columns = ("other held-out classes", "seen classes", "other things", "coverage")
    means = {
        statistic: {
            c: float(np.mean([one[statistic][c] for one in chosen.values()])) for c in columns
        }
        for statistic in next(iter(chosen.values()))
    }
    show(
        f"AUROC on held-out classes, mean of {len(jobs)} sets; coverage at 5 % false accepts",
        ("statistic", *columns),
        [(s, *(f"{row[c]:.3f}" for c in columns)) for s, row in means.items()],
    )
    rows = [
        (name, key, *(f"{100 * share:.1f}" for share in shares))
        for name, one in tested.items()
        for key, shares in one["verdicts"].items()
    ]
    show(
        "Verdicts on test classes, half of them candidates (%)",
        ("set", "pictures", *VERDICTS),
        rows,
    )
    rows = [
        (name, *(f"{100 * one['calibration error'][k]:.1f}" for k in ("before", "after")))
        for name, one in tested.items()
    ]
    show("Calibration error on test classes (%)", ("set", "before", "after"), rows)
    keep("rejection", {"statistics": means, "by set": chosen, "test": tested})


if __name__ == "__main__":
    main()
