"""
How many maps: pruning
======================

How many maps a dataset needs is not known in advance. One can try several numbers on held-out
classes, or begin with too many and drop, every few epochs, those that are hardly ever chosen
(``prune_below``, Sec. 3.3 of the paper). The second costs one training.
"""

import matplotlib.pyplot as plt

from latem import LatEm, TrainingCurveDisplay, make_latent_world

world = make_latent_world(n_poses=3, random_state=0)
traits = world.embeddings["att"]
options = {"learning_rate": 0.1, "n_epochs": 60, "random_state": 0}
pruned = LatEm(traits, n_maps=16, prune_below=0.05, **options).fit(*world.training())
whole = LatEm(traits, n_maps=16, **options).fit(*world.training())
exact = LatEm(traits, n_maps=3, **options).fit(*world.training())

X, y = world.testing()
scores = {
    "16 maps": whole.score(X, y, "unseen"),
    f"pruned to {len(pruned.maps_)}": pruned.score(X, y, "unseen"),
    "3 maps, the truth": exact.score(X, y, "unseen"),
}
for name, score in scores.items():
    print(f"{name}: {score:.1%}")

# %%
# The world has three poses, and three maps would do. Pruning does not get there exactly, since a
# map that is of some use is kept, but it drops most of the sixteen, and nothing is lost by it.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
n_maps = pruned.history_["n_maps"]
left.step(range(1, len(n_maps) + 1), n_maps, where="post")
left.axhline(3, color="black", linestyle=":", label="poses in this world")
left.set(xlabel="epoch", ylabel="maps", ylim=(0, 17))
left.legend()
TrainingCurveDisplay.from_estimator(pruned).plot(ax=right)
plt.show()
