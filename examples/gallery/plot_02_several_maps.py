"""
Why more than one map
=====================

A bilinear model scores a picture x and a class y by xᵀ W y, with one map W. LatEm has several and
takes the best, max over k of xᵀ W_k y: each map may learn one way in which classes look. In this
made-up world a class looks different in each of several *poses*, and it can be proved that one
map cannot be enough (``latem.datasets.synthetic``): of P poses it gets at most (P - 1)/P right.
"""

import matplotlib.pyplot as plt
import numpy as np

from latem import LatEm, make_latent_world, map_profiles

poses = (1, 2, 3)
maps = (1, 2, 3, 4)
worlds = {n: make_latent_world(n_poses=n, random_state=0) for n in poses}
accuracy = {
    n: [
        LatEm(world.embeddings["att"], n_maps=k, learning_rate=0.1, n_epochs=60, random_state=0)
        .fit(*world.training())
        .score(*world.testing(), classes="unseen")
        for k in maps
    ]
    for n, world in worlds.items()
}
for n, shares in accuracy.items():
    print(
        f"{n} poses:",
        "  ".join(f"K={k} {share:.1%}" for k, share in zip(maps, shares, strict=True)),
    )

# %%
# With one pose a single map is all that is needed. With two or three poses it fails, and as many
# maps as there are poses, or more, name nearly everything.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for n, shares in accuracy.items():
    left.plot(maps, 100 * np.array(shares), "o-", label=f"{n} pose{'s' if n > 1 else ''}")
left.set(xlabel="number of maps K", ylabel="unseen classes named right (%)", xticks=maps)
left.set_ylim(0, 102)
left.legend(loc="lower right")

# %%
# Nobody told the model about poses. But its maps have divided them among themselves: which map
# scores a picture best says which pose the picture is in.

world = worlds[3]
model = LatEm(
    world.embeddings["att"], n_maps=3, learning_rate=0.1, n_epochs=60, random_state=0
).fit(*world.training())
X, y = world.testing()
pose = np.array([int(image.rsplit(" ", 1)[1]) for image in world.images[world.rows(np.unique(y))]])
winner = model.latent_map(X, classes="unseen")
shares = np.array([[np.mean(winner[pose == p] == k) for k in range(3)] for p in range(3)])
right.imshow(shares, vmin=0, vmax=1, cmap="Blues")
for (p, k), share in np.ndenumerate(shares):
    right.text(k, p, f"{share:.0%}", ha="center", va="center", color="w" if share > 0.5 else "k")
right.set(xlabel="map that scores best", ylabel="pose", xticks=range(3), yticks=range(3))
right.set_title("share of the pictures in each pose")
print("shares of the pictures by map:", [f"{p.share:.0%}" for p in map_profiles(model, X)])
plt.show()
