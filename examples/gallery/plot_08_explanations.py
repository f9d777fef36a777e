"""
Why was it named so?
====================

The score of a class is a sum over its traits, so an answer can be taken apart exactly: what each
trait adds to the lead of the class that was named over another one. The parts add up to the lead.
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import ESZSL, explain_predictions, load_emoji, trait_scores

emoji = load_emoji()
keywords = emoji.embeddings["att"]
model = ESZSL(keywords, gamma=10.0, lam=1.0).fit(*emoji.training("standard"))
X, y = emoji.testing("standard")
named = model.predict(X, classes="unseen")

# %%
# One drawing that is named right, and why, against the class that came second:

row = int(np.flatnonzero((y == "squid") & (named == y))[0])
(why,) = explain_predictions(model, X[row : row + 1], "unseen")
print(why.text(6))

# %%
# One that is named wrong, and why not its own class (``against=``):

wrong = int(np.flatnonzero((y == "scorpion") & (named == "squid"))[0])
(why_not,) = explain_predictions(model, X[wrong : wrong + 1], "unseen", against="scorpion")
print(why_not.text(6))

figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
for ax, one in zip(axes, (why, why_not), strict=True):
    top = one.top(10)
    top = top[top != 0]
    ax.barh(range(len(top)), top, tick_label=list(top.index), color=np.where(top > 0, "C0", "C1"))
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set(title=f"{one.named} rather than {one.runner_up}", xlabel="adds to the lead")

# %%
# The other way round: how much of one trait does the model see in all drawings? The drawings that
# show most of an animal are of animals far more often than others, though none of these classes
# was ever seen.

animal = trait_scores(model, X)["tag:animal"].to_numpy()
best = np.argsort(-animal)[:20]
is_animal = keywords.vectors[keywords.positions(y), keywords.column_names().index("tag:animal")] > 0
print(f"animals among the 20 best: {is_animal[best].sum()}, among all: {is_animal.mean():.0%}")
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
bins = np.linspace(animal.min(), animal.max(), 40)
ax.hist([animal[~is_animal], animal[is_animal]], bins, stacked=True, label=["others", "animals"])
ax.set(xlabel="score of the trait tag:animal", ylabel="drawings of unseen classes")
ax.legend()
plt.show()
