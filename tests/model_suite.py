"""Every registered model with parameters small enough for tests, and problems for them."""

import numpy as np

import latem
from latem import ClassEmbeddings, load_emoji, make_latent_world
from latem.models import model_rows

QUICK = {  # what makes a model quick; models that are quick already need no entry
    "LatEm": {"n_maps": 2, "n_epochs": 5, "random_state": 0},
    "SJE": {"n_epochs": 5, "random_state": 0},
    "ALE": {"n_epochs": 5, "random_state": 0},
    "DeViSE": {"n_epochs": 5, "random_state": 0},
    "WSABIE": {"rank": 4, "n_epochs": 5, "random_state": 0},
    "ESZSLCV": {"gammas": [1.0, 10.0], "lams": [1.0], "random_state": 0},
    "CMT": {"n_hidden": 5, "max_iter": 15, "random_state": 0},
    "Committee": {"random_state": 0},
    "CommitteeCV": {"cv": 3, "random_state": 0},
    "LatEmCV": {"n_maps": (1, 2), "learning_rate": (0.1,), "n_epochs": 5, "random_state": 0},
}
SINGLE = sorted(
    row.name for row in model_rows.rows() if row.name not in ("HeldOutSearch", "LateFusion")
)
EVERY = [*SINGLE, "HeldOutSearch", "LateFusion"]


def make(name, table, dtype="float64"):
    """Unfitted model of a registered kind."""
    if name == "HeldOutSearch":
        return latem.HeldOutSearch(make("SJE", table, dtype), {"margin": [0.5, 1.0]}, cv=3,
                                   random_state=0)  # fmt: skip
    if name == "LateFusion":
        members = [(kind, make(kind, table, dtype)) for kind in ("ESZSL", "CCA")]
        return latem.LateFusion(members, weights=[2, 1], standardize=True)
    return model_rows.find(name).load()(table, dtype=dtype, **QUICK.get(name, {}))


def with_table(model, table):
    """Clone of a model that describes classes by another table."""
    from sklearn.base import clone

    copy = clone(model)
    if isinstance(copy, latem.HeldOutSearch):
        return copy.set_params(model__class_embeddings=table)
    if isinstance(copy, latem.LateFusion):
        names = [name for name, _ in copy.members]
        return copy.set_params(**{f"{name}__class_embeddings": table for name in names})
    return copy.set_params(class_embeddings=table)


def set_threads(model, n_threads):
    """Set the number of threads wherever there is one."""
    names = [n for n in model.get_params() if n == "n_threads" or n.endswith("__n_threads")]
    return model.set_params(**dict.fromkeys(names, n_threads))


def emoji_problem():
    """Drawings of twenty kinds of emoji, described by their keywords, and ten kinds unseen.

    A fourth of the features, so that the searches are quick.
    """
    emoji = load_emoji()
    features = emoji.features[:, ::4].astype(np.float64)
    seen, unseen = emoji.split().train[:20], emoji.split().test[:10]
    rows = emoji.rows(seen)
    table = emoji.embeddings["att"].select([*seen, *unseen])
    used = table.vectors.any(axis=0)
    table = ClassEmbeddings(table.names, table.vectors[:, used], name="att")
    return features[rows], emoji.labels[rows], table, features[emoji.rows(unseen)]


def world_problem():
    world = make_latent_world(n_poses=1, n_seen=20, n_images=8, random_state=0)
    table = world.embeddings["att"]
    shifted = table.vectors - table.vectors.min()  # no negative numbers: traits
    table = ClassEmbeddings(table.names, shifted, columns=[f"trait {i}" for i in range(8)])
    X, y = world.training()
    return X.astype(np.float64), y, table, world.testing()[0]
