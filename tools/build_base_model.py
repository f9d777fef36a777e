"""Build the model that names pictures from words alone, `latem.workflows.name_by_words.BASE_MODEL`.

    python tools/build_base_model.py [--choose]

Its training set is the last layer of EfficientNet-Lite0: one row of weights for each of 1000
ImageNet classes, known by their WordNet ids. No picture is involved. γ and λ are those that name
held-out rows best, in five folds of classes; --choose tries them all again and shows the scores.
Map and metric are stored in half precision, to save space.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from latem import ESZSL, ClassEmbeddings
from latem.core import storage
from latem.embeddings.wordnet import Synset, load_wordnet
from latem.features.efficientnet import classifier
from latem.features.encoders import DEFAULT_ENCODER, load_encoder
from latem.models.balance import IN_FILES
from latem.models.eszsl import ESZSLCV
from latem.workflows.name_by_words import BASE_MODEL, EMBEDDING, likeness

GAMMA, LAM = 30.0, 0.1
GAMMAS, LAMS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0), (0.01, 0.03, 0.1, 0.3, 1.0)
BASE: dict[str, Any] = {"feature_scaling": "l2", "balance_classes": True}


def make_table(
    names: Sequence[str], synsets: Sequence[Synset], ids: Sequence[str]
) -> ClassEmbeddings:
    """Class table: how much some synsets are like those with these ids."""
    known = [load_wordnet().synset(key) for key in ids]
    return ClassEmbeddings(names, likeness(synsets, known), name=EMBEDDING, columns=ids)


def prototypes() -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Synset]]:
    """Rows, biases, ids and synsets of the 1000 classes."""
    weights, bias, ids = classifier()
    return weights, bias, np.array(ids), [load_wordnet().synset(key) for key in ids]


def choose() -> None:
    """Show how well held-out rows are named, for every pair of the grid."""
    weights, _, ids, synsets = prototypes()
    table = make_table(ids.tolist(), synsets, ids.tolist())
    search = ESZSLCV(table, gammas=GAMMAS, lams=LAMS, cv=5, random_state=0, **BASE).fit(
        weights, ids
    )
    print("Accuracy among the 200 held-out classes of a fold; chance 0.5 %")
    for gamma, scores in zip(GAMMAS, search.cv_scores_, strict=True):
        for lam, score in zip(LAMS, scores, strict=True):
            print(f"gamma {gamma:g}, lam {lam:g}: {score:.1%}")
    print(f"Best: gamma {search.gamma_:g}, lam {search.lam_:g}")


def build(target: Path) -> None:
    """Write the model file."""
    weights, _, ids, synsets = prototypes()
    table = make_table(ids.tolist(), synsets, ids.tolist())
    model = ESZSL(table, gamma=GAMMA, lam=LAM, **BASE).fit(weights, ids)
    model.encoder_ = load_encoder(DEFAULT_ENCODER).spec
    tensors, meta = model.pack()
    # balanced scores do not depend on the map's scale: take the one half precision resolves best
    scale = 1 / np.abs(tensors["map"]).max()
    tensors["map"] = (scale * tensors["map"]).astype(np.float16)
    tensors[IN_FILES] = (scale**2 * tensors[IN_FILES]).astype(np.float16)
    tensors["table.vectors"] = tensors["table.vectors"].astype(np.uint8)
    storage.write_file(target, "model", tensors, meta)
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB, {len(ids)} prototypes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=BASE_MODEL)
    parser.add_argument("--choose", action="store_true", help="try all γ and λ; write nothing")
    arguments = parser.parse_args()
    choose() if arguments.choose else build(arguments.out)
