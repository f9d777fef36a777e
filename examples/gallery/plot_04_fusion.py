"""
Fusing several descriptions
===========================

Classes can be described in more than one way: emoji by keywords, by the word vector of their
name, and by a sentence. A late fusion trains one model with each description and adds up their
scores. The weights are chosen on classes that none of the models has seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import ESZSL, LateFusion, load_emoji

emoji = load_emoji()
split = emoji.split("standard")
names = ["att", "glo", "text"]
members = [(name, ESZSL(emoji.embeddings[name], gamma=10.0, lam=1.0)) for name in names]

# %%
# First the weights: models that have learned from the split's train classes alone are weighted by
# how they name its val classes.

rows = emoji.rows(split.train)
first = LateFusion(members, standardize=True).fit(emoji.features[rows], emoji.labels[rows])
first.choose_weights(*emoji.validation("standard"))
weights = dict(zip(names, first.weights_.tolist(), strict=True))
print("weights:", {name: round(weight, 2) for name, weight in weights.items()})

# %%
# Then the same models learn from train and val classes together, and name the test classes.

fusion = LateFusion(members, weights=first.weights_, standardize=True)
fusion.fit(*emoji.training("standard"))
X, y = emoji.testing("standard")
scores = {
    name: model.score(X, y, "unseen") for name, model in zip(names, fusion.models_, strict=True)
}
equal = LateFusion(list(zip(names, fusion.models_, strict=True)), standardize=True, prefit=True)
scores["equal weights"] = equal.fit(*emoji.training("standard")).score(X, y, "unseen")
scores["chosen weights"] = fusion.score(X, y, "unseen")
for name, score in scores.items():
    print(f"{name}: {score:.1%}")

# %%
# Together they name more than the best of them alone: they err on different classes. The weights
# matter little here, as equal ones are as good; they matter where one description is much worse.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
colours = ["C0"] * len(names) + ["C1"] * 2
axes.bar(list(scores), 100 * np.array(list(scores.values())), color=colours)
axes.set(ylabel="unseen classes named right (%)")
axes.margins(y=0.1)
for place, score in enumerate(scores.values()):
    axes.text(place, 100 * score + 0.4, f"{score:.1%}", ha="center")
plt.show()
