"""Pack a dataset folder of emoji into the compact file that ships with latem.

    python tools/pack_emoji.py FOLDER

Features lie between 0 and 6 (averages of ReLU6 units). They are stored as one byte each, the
square root of x/6 in 255 steps: about 1 % precision where it matters, no statistics of any
class involved. Class tables are stored in half precision, or as bits where they are 0/1.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from latem.core.atomic import atomic_path
from latem.datasets.emoji import EMOJI_FILE, quantise
from latem.datasets.folder import read_folder


def pack(folder: Path, target: Path) -> None:
    """Write the compact file."""
    dataset = read_folder(folder)
    classes, labels = np.unique(dataset.labels, return_inverse=True)
    character, source = np.array([name.rsplit(" ", 1) for name in dataset.images]).T
    source = [name.replace("lobehub-fluent-emoji-", "fluent-") for name in source]
    sources, source = np.unique(source, return_inverse=True)
    first = {label: character[row] for row, label in reversed(list(enumerate(labels)))}
    place = {name: i for i, name in enumerate(classes.tolist())}
    arrays = {
        "features": quantise(np.asarray(dataset.features, np.float32)),
        "labels": labels.astype(np.uint16),
        "sources": source.astype(np.uint8),
    }
    description: dict = {
        "info": dict(dataset.info),
        "classes": classes.tolist(),
        "characters": [str(first[i]) for i in range(len(classes))],
        "sources": sources.tolist(),
        "columns": {},
        "splits": {
            name: {
                part: [place[key] for key in getattr(split, part)]
                for part in ("train", "val", "test")
            }
            for name, split in dataset.splits.items()
        },
    }
    for name, table in dataset.embeddings.items():
        vectors = table.select(classes.tolist()).vectors
        binary = np.isin(vectors, (0, 1)).all()
        arrays[f"table_{name}"] = (
            np.packbits(vectors.astype(bool), axis=1) if binary else (vectors.astype(np.float16))
        )
        description["columns"][name] = list(table.columns or ())
    text = json.dumps(description, ensure_ascii=False)
    arrays["description"] = np.frombuffer(text.encode(), np.uint8)
    with atomic_path(target) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, **arrays)
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB, {len(classes)} classes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=EMOJI_FILE)
    arguments = parser.parse_args()
    pack(arguments.folder, arguments.out)
