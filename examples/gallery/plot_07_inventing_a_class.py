"""
Inventing a class
=================

A class needs no pictures, and it need not even exist: whoever can describe it can look for it. A
``Description`` starts from a class that is known and changes what is different. It can be a
candidate of every model that knows the same columns, without training anew.
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import ESZSL, Description, load_emoji

emoji = load_emoji()
keywords = emoji.embeddings["att"]
model = ESZSL(keywords, gamma=10.0, lam=1.0, feature_scaling="l2-centered")
model.fit(*emoji.training("standard"))

# %%
# There is no emoji of a sea horse, though many people remember one. It is like a horse, but no
# mammal: it is a marine animal, and lives in the ocean.

horse = Description(keywords, "horse")
invented = horse.least("kind:animal-mammal").most("kind:animal-marine", "tag:ocean")
print(invented)
table = invented.named("sea horse")

# %%
# ``with_classes`` gives a model that knows the new class beside all others; ``rank_images`` finds
# its best pictures, here among the 464 drawings of unseen classes.

knowing = model.with_classes(table)
X, y = emoji.testing("standard")
images = emoji.images[emoji.rows(np.unique(y))]
best = {name: knowing.rank_images(X, name, 12) for name in ("horse", "sea horse")}
n_squids = {name: int(np.sum(y[rows] == "squid")) for name, (rows, _) in best.items()}
print("drawings of squids among the best twelve:", n_squids)

# %%
# Sea horses were not among the drawings to be found, so squids are as near as they come: the only
# marine animal there. For a horse, which is a mammal, rams come up, and no squid is among the
# first twelve.

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharex=True)
for ax, (name, (rows, values)) in zip(axes, best.items(), strict=True):
    labels = [f"{y[row]}, {images[row].rsplit(' ', 1)[1]}" for row in rows]
    colours = ["C1" if y[row] == "squid" else "C0" for row in rows]
    ax.barh(range(len(rows)), values, tick_label=labels, color=colours)
    ax.invert_yaxis()
    ax.set(title=f"best drawings for “{name}”", xlabel="score")
plt.show()
