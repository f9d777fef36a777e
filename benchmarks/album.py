"""What naming pictures together gains, and that it does not lose where classes are missing.

Albums are made of the test classes of each set: all pictures; those of 5, 10 or 30 classes, while
all test classes are candidates; 200 pictures; and uneven classes, the k-th of which has a k-th of
its pictures. The first model is the one that `latem.train` makes, and further tables are looked at
with ESZSL. Mean per-class accuracy alone and in the album, means over draws.

    python benchmarks/album.py [--redealt]

--redealt looks at no test class: models are fitted to three quarters of the seen classes, and
albums are made of the last quarter. The constants in `latem/models/album.py` were chosen so.
"""

import argparse
from dataclasses import replace

import numpy as np
from machine import keep, real_dataset, show

import latem
from latem.datasets.dataset import Split

CELLS = [  # set, class table, model
    ("cub", "att", "Committee"),
    ("dogs", "cn", "Committee"),
    ("emoji", "text", "Committee"),
    ("animals", "att", "Committee"),
    ("awa_handcrafted", "att", "Committee"),
    ("cub", "att", "LatEm"),
    ("dogs", "cn", "LatEm"),
    ("emoji", "text", "LatEm"),
    ("animals", "att", "LatEm"),
    ("awa_handcrafted", "att", "LatEm"),
    ("cub", "att", "ESZSL"),
    ("cub", "glo", "ESZSL"),
    ("dogs", "cn", "ESZSL"),
    ("dogs", "hie", "ESZSL"),
    ("emoji", "text", "ESZSL"),
    ("emoji", "glo", "ESZSL"),
    ("animals", "att", "ESZSL"),
    ("animals", "w2v", "ESZSL"),
    ("awa_handcrafted", "att", "ESZSL"),
    ("awa_handcrafted", "w2v", "ESZSL"),
]
SETTINGS = ("all", "5 classes", "10 classes", "30 classes", "200 pictures", "uneven")
DRAWS = 5


def albums(y, setting):
    """Rows of some albums of a setting; none if there are too few classes for it."""
    names = np.unique(y)
    if setting == "all":
        return [np.arange(len(y))]
    found = []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        order = rng.permutation(names)
        if setting.endswith("classes"):
            n = int(setting.split()[0])
            if n >= len(names):
                return []
            rows = np.flatnonzero(np.isin(y, order[:n]))
        elif setting == "200 pictures":
            rows = np.sort(rng.permutation(len(y))[:200])
        else:
            parts = [rng.permutation(np.flatnonzero(y == name)) for name in order]
            kept = [part[: max(1, round(len(part) / (1 + k)))] for k, part in enumerate(parts)]
            rows = np.sort(np.concatenate(kept))
        found.append(rows)
    return found


def redealt(dataset):
    """The dataset with a quarter of its seen classes, a third where they are few, to test on."""
    split = dataset.split()
    seen = np.sort([*split.train, *split.val])
    order = np.random.default_rng(100).permutation(len(seen))
    n = len(seen) // (4 if len(seen) > 60 else 3)
    parts = np.split(seen[order], [n, 2 * n])
    test, val, train = (part.tolist() for part in parts)
    return replace(dataset, splits={"standard": Split(train, val, test)})


def measured(dataset, embedding, kind):
    """Accuracies alone and in albums, by setting, in percent."""
    model = latem.train(dataset, embedding, kind=kind)
    X, y = dataset.testing()
    X, y = np.asarray(X, np.float32), np.asarray(y)
    test = list(dataset.split().test)
    found = {}
    for setting in SETTINGS:
        pairs = []
        for rows in albums(y, setting):
            answers = model.predict_album(X[rows], test, top=1)
            together = np.array([answer.names[0] for answer in answers])
            pairs.append(
                [
                    100 * latem.mean_class_accuracy(y[rows], names)
                    for names in (answers.inductive.astype(together.dtype), together)
                ]
            )
        if pairs:
            found[setting] = np.mean(pairs, axis=0).tolist()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--redealt", action="store_true", help="on seen classes, dealt anew")
    kinds = ["Committee", "LatEm", "ESZSL"]
    parser.add_argument("--models", nargs="*", default=kinds, help="which to look at")
    arguments = parser.parse_args()
    found = {}
    for name, embedding, kind in CELLS:
        folder = real_dataset(name) if kind in arguments.models else None
        if folder is None:
            continue
        dataset = latem.read_folder(folder)
        if arguments.redealt:
            dataset = redealt(dataset)
        found[f"{name} {embedding} {kind}"] = measured(dataset, embedding, kind)
        print(name, embedding, kind, found[f"{name} {embedding} {kind}"], flush=True)
    if not found:
        return
    rows = [
        (
            cell,
            *(
                f"{one[s][0]:.1f} {one[s][1] - one[s][0]:+.1f}" if s in one else "–"
                for s in SETTINGS
            ),
        )
        for cell, one in found.items()
    ]
    gains = {s: [one[s][1] - one[s][0] for one in found.values() if s in one] for s in SETTINGS}
    rows.append(("mean gain", *(f"{np.mean(g):+.1f}" if g else "–" for g in gains.values())))
    show("Mean per-class accuracy alone, and gain in an album (%)", ("", *SETTINGS), rows)
    keep("album_redealt" if arguments.redealt else "album", {"accuracy": found})


if __name__ == "__main__":
    main()
