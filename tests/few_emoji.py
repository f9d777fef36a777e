"""A small part of the bundled emoji, with which the demo takes a second."""

import numpy as np

from latem import Split, ZeroShotDataset, load_emoji


def few_emoji():
    """A tenth of the classes, and few of the features."""
    emoji = load_emoji()
    split = emoji.split("standard")
    parts = {"train": split.train[::10], "val": split.val[::10], "test": split.test[::10]}
    parts = {part: list(names) for part, names in parts.items()}
    every = [name for names in parts.values() for name in names]
    rows = np.sort(emoji.rows(every))
    return ZeroShotDataset(
        features=emoji.features[rows, :64],
        labels=emoji.labels[rows],
        embeddings={name: emoji.embeddings[name].select(every) for name in ("att", "text")},
        splits={"standard": Split(**parts)},
        images=emoji.images[rows],
        name="few emoji",
        info={"characters": emoji.info["characters"]},
    )
