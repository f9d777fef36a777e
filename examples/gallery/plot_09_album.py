"""
A whole album
=============

A model names each picture by itself. If many pictures are there together, they tell more: those
that resemble each other are probably of one class, and the album shows which classes occur at
all. ``predict_album`` uses both. It is *transductive*: an answer depends on the other pictures,
so its accuracy must not be compared with that of models that see one picture at a time.
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import ESZSL, calibrate_answers, load_emoji, mean_class_accuracy

emoji = load_emoji()
split = emoji.split("standard")
X, y = emoji.training("standard")
model = ESZSL(emoji.embeddings["text"], gamma=10.0, lam=1.0).fit(X, y)
calibrate_answers(model, X, y, cv=split.val)

# %%
# The album: all drawings of the 60 unseen classes. Drawings of one thing by different hands
# resemble each other, and that helps.

X_new, y_new = emoji.testing("standard")
album = model.predict_album(X_new, classes="unseen")
alone = model.predict(X_new, classes="unseen")
together = album.probabilities.idxmax(axis=1).to_numpy()
before, after = mean_class_accuracy(y_new, alone), mean_class_accuracy(y_new, together)
print(f"alone {before:.1%}, together {after:.1%}")

# %%
# Not all classes gain by it. Take every third one: together, its drawings are named no better
# than alone. What helps there is a name by hand, for one drawing of each class; those that are
# like it follow. Only drawings without such a name are counted.

by_hand = split.test[::3]
labels = {int(np.flatnonzero(y_new == name)[0]): name for name in by_hand}
helped = model.predict_album(X_new, classes="unseen", labels=labels)
names = helped.probabilities.idxmax(axis=1).to_numpy()
rest = np.isin(y_new, by_hand) & ~np.isin(np.arange(len(y_new)), list(labels))
gained = {
    "alone": mean_class_accuracy(y_new[rest], alone[rest]),
    "together": mean_class_accuracy(y_new[rest], together[rest]),
    "with a name by hand": mean_class_accuracy(y_new[rest], names[rest]),
}
print({name: f"{share:.1%}" for name, share in gained.items()})

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.bar(["alone", "together"], [100 * before, 100 * after], color=["C0", "C1"])
left.set(title="all drawings", ylabel="named right (%)")
right.bar(list(gained), 100 * np.array(list(gained.values())), color=["C0", "C1", "C2"])
right.set(title="20 classes: drawings without a name by hand", ylabel="named right (%)")
plt.show()
