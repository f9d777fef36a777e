"""
A first model
=============

A model learns from pictures of some classes and then names classes that it has never seen a
picture of, from their descriptions. Here the pictures are drawings of emoji, as vectors of 1,280
features, and a class is described by keywords: 0 or 1 in columns such as ``tag:animal``.
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import ConfusionDisplay, LatEmCV, load_emoji, mean_class_accuracy, per_class_accuracy

emoji = load_emoji()
split = emoji.split("standard")
keywords = emoji.embeddings["att"]
X, y = emoji.training("standard")
X_new, y_new = emoji.testing("standard")
print(f"{len(X)} drawings of {len(np.unique(y))} classes to learn from")
print(f"{len(X_new)} drawings of {len(split.test)} other classes to name")

# %%
# ``LatEmCV`` chooses its parameters on classes that are held out for the purpose: here the
# split's 80 val classes. The table describes all classes, those without pictures included, and
# goes to the constructor; ``fit`` sees pictures and names of seen classes only.

model = LatEmCV(keywords, cv=split.val, random_state=0).fit(X, y)
print("chosen:", model.best_params_)

# %%
# ``classes=`` says which classes may be the answer. Without it a model answers with a class that
# it has learned from, as every classifier does.

named = model.predict(X_new, classes="unseen")
accuracy = mean_class_accuracy(y_new, named)
chance = 1 / len(split.test)
print(f"named right: {accuracy:.1%} of the drawings of unseen classes, guessing {chance:.1%}")
print(model.top_k(X_new[:1], 3, classes="unseen"))

# %%
# The score is a mean over very different classes. Some unseen classes are named almost every
# time, others never: it depends on what the keywords say, and on whether seen classes show it.

by_class = per_class_accuracy(y_new, named)
by_class = dict(sorted(by_class.items(), key=lambda item: -item[1]))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
left.bar(range(len(by_class)), [100 * share for share in by_class.values()], width=1.0)
left.axhline(100 * accuracy, color="black", linewidth=1, label=f"mean {accuracy:.1%}")
left.axhline(100 * chance, color="black", linestyle=":", label=f"guessing {chance:.1%}")
left.set(xlabel="unseen classes, best first", ylabel="drawings named right (%)")
left.legend()
confused = ConfusionDisplay.from_predictions(y_new, named, n=12).plot(ax=right)
right.set_title("most frequent confusions")
print("always right:", [name for name, share in by_class.items() if share == 1])
n_never = sum(share == 0 for share in by_class.values())
print(f"never right: {n_never} of {len(by_class)} classes")
plt.show()

# %%
# Many confusions are between things whose keywords are nearly the same, such as the two
# airplanes, or that differ in what keywords do not say, such as the shape of a ball. For others,
# such as a handbag that is taken for a key, only the drawings can be to blame.
