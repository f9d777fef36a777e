"""A small working folder, as somebody may have it: a dataset, models, tables, words, pictures."""

import gzip
import shutil

import numpy as np
from helpers import PHOTOS

from latem import ESZSL, LateFusion, LatEm, calibrate_answers, write_folder
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.emoji import ENCODER
from latem.embeddings.table import ClassEmbeddings

CLASSES = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
TRAITS = ("legs", "wings", "fur", "size")
ROWS = ((6, 0, 0, 1), (6, 4, 1, 1), (4, 0, 9, 5), (4, 0, 8, 6), (0, 0, 0, 5),
        (4, 0, 9, 6), (4, 0, 5, 9), (2, 2, 0, 4), (2, 2, 1, 5), (2, 2, 1, 3))  # fmt: skip
WIDTH, N_EACH = 12, 6
SPLIT = Split(train=CLASSES[:5], val=CLASSES[5:7], test=CLASSES[7:])


def table(name="att"):
    """Class table of the ten animals."""
    return ClassEmbeddings(list(CLASSES), np.array(ROWS, float), name=name, columns=list(TRAITS))


def zoo(width=WIDTH):
    """Dataset of ten animals, with two class tables; its features know the traits."""
    rng = np.random.default_rng(0)
    labels = np.repeat(CLASSES, N_EACH)
    known = np.repeat(np.array(ROWS, float), N_EACH, axis=0) @ rng.normal(size=(4, width))
    return ZeroShotDataset(
        features=(known + 0.3 * rng.normal(size=known.shape)).astype(np.float32),
        labels=labels,
        embeddings={"att": table(), "sizes": table("sizes")},
        splits={"standard": SPLIT},
        images=np.array([f"{name}/{i}.jpg" for i, name in enumerate(labels)]),
        name="zoo",
    )


def fitted(kind="zoo"):
    """A model of the zoo: calibrated, with maps, of several tables, or one that reads pictures."""
    data = zoo(ENCODER["n_features"] if kind == "pictured" else WIDTH)
    X, y = data.training()
    if kind == "maps":
        return LatEm(table(), n_maps=2, n_epochs=2, random_state=0).fit(X, y)
    if kind == "fusion":
        return LateFusion([("one", ESZSL(table())), ("two", ESZSL(table("sizes")))]).fit(X, y)
    model = ESZSL(table(), gamma=10.0, lam=1.0).fit(X, y)
    calibrate_answers(model, X, y, cv=list(SPLIT.val))
    if kind == "pictured":
        model.encoder_ = ENCODER
    return model


def build(folder):
    """Write it all.

    - `zoo`: dataset folder; `traits.csv`: its class table; `names.txt`, `unseen.txt`
    - `zoo.safetensors`, `maps.safetensors`, `fusion.safetensors`, `pictured.safetensors`: models
    - `lines.csv`, `zoo.npz`, `features.npy`: images as tables and arrays
    - `words.txt`, `words.txt.gz`, `texts.txt`, `sentences.csv`: word vectors, texts, descriptions
    - `photos`: a folder of two pictures for each of `ant` and `hen`
    """
    data = zoo()
    write_folder(data, folder / "zoo")
    for kind in ("zoo", "maps", "fusion", "pictured"):
        fitted(kind).save(folder / f"{kind}.safetensors")
    table().to_frame().to_csv(folder / "traits.csv")
    lines = {
        "names.txt": CLASSES,
        "unseen.txt": SPLIT.test,
        "texts.txt": ["the ant sees a bee"] * 9,
        "words.txt": [
            " ".join(map(str, (name, *row))) for name, row in zip(CLASSES, ROWS, strict=True)
        ],
    }
    for name, content in lines.items():
        (folder / name).write_text("\n".join(content) + "\n")
    (folder / "sentences.csv").write_text("class,text\nant,has six legs\nbee,has a sting\n")
    np.savez(folder / "zoo.npz", features=data.features, labels=data.labels)
    np.save(folder / "features.npy", data.features[:4])
    (folder / "words.txt.gz").write_bytes(gzip.compress((folder / "words.txt").read_bytes()))
    for name in ("ant", "hen"):
        (folder / "photos" / name).mkdir(parents=True)
        for photo in ("china.jpg", "flower.jpg"):
            shutil.copy(PHOTOS / photo, folder / "photos" / name / photo)
    return folder


def checkpoint(path):
    """Train a model of the zoo for an epoch, with a checkpoint."""
    training(path, n_epochs=1)


def training(path, n_epochs=2):
    """Train a model of the zoo, going on from a checkpoint."""
    model = LatEm(table(), n_maps=2, n_epochs=n_epochs, random_state=0)
    return model.fit(*zoo().training(), checkpoint=path, checkpoint_every=1)
