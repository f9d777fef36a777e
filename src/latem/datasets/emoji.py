"""The bundled dataset: 634 things, each drawn by several free emoji sets.

Real pictures of many classes with names and keywords, small enough to ship. A class *is* a
character, so tables and pages can show it without shipping a drawing. Part of any score on it
is shared colour and style: it says nothing about accuracy on photos.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from latem.datasets.dataset import Split, ZeroShotDataset
from latem.embeddings.table import ClassEmbeddings

EMOJI_FILE = Path(__file__).parent / "data" / "emoji.npz"
# of the encoder that made the features: drawings were shown to it whole
ENCODER = {
    "name": "efficientnet-lite0",
    "n_features": 1280,
    "size": 224,
    "mean": [127 / 255] * 3,
    "std": [128 / 255] * 3,
    "crop": 0.875,
    "interpolation": "bicubic",
    "squash": True,
    "digest": "sha256:579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
}
_LARGEST = 6.0  # averages of ReLU6 units cannot exceed it


def quantise(features: np.ndarray) -> np.ndarray:
    """Features between 0 and 6 as bytes, finer near zero."""
    return np.round(np.sqrt(features / _LARGEST) * 255).astype(np.uint8)


def restore(codes: np.ndarray) -> np.ndarray:
    """Features from what `quantise` made of them, as float32."""
    return (np.float32(_LARGEST) * np.square(np.arange(256, dtype=np.float32) / 255))[codes]


def load_emoji() -> ZeroShotDataset:
    """The bundled emoji dataset.

    Returns
    -------
    ZeroShotDataset
        4,767 drawings of 634 classes, EfficientNet-Lite0 features (1280), class tables "att"
        (keywords, kind and group as 0/1), "glo" (GloVe of the name) and "text" (MiniLM of name
        and keywords), splits "standard" and "random1" to "random4" with 494/80/60 classes. The
        characters themselves are in ``info["characters"]``, by class name.

    Examples
    --------
    >>> emoji = load_emoji()
    >>> emoji
    ZeroShotDataset('Emoji', 4767 images × 1280 features, 634 classes, embeddings: att, glo, text)
    >>> emoji.info["characters"]["zebra"]
    '🦓'
    """
    with np.load(EMOJI_FILE, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    description = json.loads(arrays["description"].tobytes().decode())
    classes = np.array(description["classes"])
    characters = np.array(description["characters"])
    sources = np.array(description["sources"])[arrays["sources"]]
    labels = arrays["labels"]
    tables = {}
    for name, columns in description["columns"].items():
        vectors = arrays[f"table_{name}"]
        if vectors.dtype == np.uint8:
            vectors = np.unpackbits(vectors, axis=1, count=len(columns))
        tables[name] = ClassEmbeddings(classes, vectors, name=name, columns=columns)
    splits = {
        name: Split(**{part: classes[numbers].tolist() for part, numbers in parts.items()})
        for name, parts in description["splits"].items()
    }
    info = description["info"]
    info["encoder_spec"] = json.dumps(ENCODER)
    info["characters"] = dict(zip(classes.tolist(), characters.tolist(), strict=True))
    return ZeroShotDataset(
        features=restore(arrays["features"]),
        labels=classes[labels],
        embeddings=tables,
        splits=splits,
        images=np.char.add(np.char.add(characters[labels], " "), sources),
        name=info["name"],
        info=info,
    )
