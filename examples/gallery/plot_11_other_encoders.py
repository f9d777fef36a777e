"""
Vectors of CLIP, BioCLIP or any other network
=============================================

latem takes any picture vectors and any class vectors. If both come from a pair of towers such as
CLIP's, they share a space already; here they need not, because the map between them is learned.
All it takes is one array with a row per picture, one label per picture, and one table with a row
per class.

**No weights of CLIP or BioCLIP come with latem, so this example does not use them.** It uses two
networks that have never heard of each other and whose vectors do come with it: pictures by
EfficientNet-Lite0 (1,280 numbers), names and keywords by the sentence encoder MiniLM (384
numbers). With weights at hand (and ``pip install '.[torch]'``) a command makes a dataset folder of
your pictures, which ``latem.read_folder`` reads; ``names.csv`` has a row per class, its vector by
the text tower::

    latem embed images photos --encoder open_clip:ViT-B-32/openai --table names.csv --out set
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from latem import ESZSL, load_emoji

emoji = load_emoji()
images, labels = emoji.features, emoji.labels  # (4767, 1280) and (4767,)
sentences = emoji.embeddings["text"]
texts = pd.DataFrame(sentences.vectors, index=sentences.names)  # (634, 384), a row per class
print(images.shape, texts.shape)

# %%
# Vectors of such networks are compared by their direction: ``feature_scaling="l2-centered"``
# takes the mean away from picture vectors and gives them length 1.

test = emoji.split("standard").test
unseen = np.isin(labels, test)
seen_classes = np.unique(labels[~unseen])


def accuracy(n_classes, draw):
    """Unseen classes named right after learning from some of the seen ones."""
    rng = np.random.default_rng(draw)
    rows = np.isin(labels, rng.choice(seen_classes, n_classes, replace=False))
    model = ESZSL(texts, gamma=1.0, lam=1.0, feature_scaling="l2-centered")
    model.fit(images[rows], labels[rows])
    return model.score(images[unseen], labels[unseen], test)


# %%
# How many classes must be seen before the two spaces fit together? Three draws for each number:

sizes = [25, 50, 100, 200, 400, len(seen_classes)]
found = {n: [accuracy(n, draw) for draw in range(3)] for n in sizes}
for n, scores in found.items():
    print(f"{n:3} seen classes: {np.mean(scores):.1%}")

# %%
# Every doubling of the seen classes helps, and the curve is not yet flat: for a map between two
# strange spaces classes count, more than pictures of each.

figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
means = [100 * np.mean(found[n]) for n in sizes]
axes.semilogx(sizes, means, "o-", label="mean")
for n in sizes:
    axes.plot(
        [n] * 3, 100 * np.array(found[n]), ".", color="C1", label="a draw" if n == 25 else None
    )
axes.axhline(100 / len(test), color="black", linestyle=":", label="guessing")
axes.set(xlabel="seen classes", ylabel="unseen classes named right (%)", xticks=sizes)
axes.set_xticklabels(sizes)
axes.minorticks_off()
axes.set_ylim(bottom=0)
axes.legend()
plt.show()
