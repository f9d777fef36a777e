"""A synthetic world in which one map cannot be enough.

Every class has a description y, a unit vector. Its images show it in one of P *poses*: pose p
turns y by the angle 2πp/P in each of d_y/2 planes (a rotation R_p), and a fixed matrix A with
orthonormal columns carries the result into the feature space, where noise is added:

    x = A R_p y + noise.

*One map fails.* The rotations add up to zero, so the P noiseless images of a class do too. A
single map gives every class a score that is linear in x, hence scores that add up to zero over
the P images, for the true class and for every other. The true class can therefore not be
strictly best on all P: without noise, one map names at most (P - 1)/P of the images.

*P maps suffice.* With W_p = A R_p the true class scores 1 under the map of its own pose, and no
class whose description is not itself a rotation of y by a pose's angle reaches 1 under any map.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from latem.core.arrays import unit_rows
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.embeddings.table import ClassEmbeddings


def make_latent_world(
    *,
    n_seen: int = 60,
    n_unseen: int = 10,
    n_poses: int = 2,
    n_images: int = 30,
    n_features: int = 32,
    n_dimensions: int = 8,
    noise: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
) -> ZeroShotDataset:
    """Dataset whose classes look different in several poses.

    Parameters
    ----------
    n_seen, n_unseen : int
        Classes to learn from and classes to be named from their descriptions alone.
    n_poses : int
        Ways a class can look, at least 1. One map can name at most (n_poses - 1)/n_poses of
        the noiseless images if there are several; n_poses maps can name all.
    n_images : int
        Images per class, spread evenly over the poses.
    n_features, n_dimensions : int
        Width of image features and class vectors; `n_dimensions` is even and not larger.
    noise : float
        Standard deviation of the noise, relative to the length of an image vector.
    random_state : int, RandomState or None

    Returns
    -------
    ZeroShotDataset
        With embedding "att", split "standard" (a fifth of the seen classes is `val`), and the
        pose of each image in its name.

    Examples
    --------
    >>> make_latent_world(random_state=0)
    ZeroShotDataset('latent world', 2100 images × 32 features, 70 classes, embeddings: att)
    """
    for name, value, least in (
        ("n_seen", n_seen, 2),
        ("n_unseen", n_unseen, 1),
        ("n_poses", n_poses, 1),
        ("n_images", n_images, 1),
        ("n_dimensions", n_dimensions, 2),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, but is {value}.")
    if n_dimensions % 2 or n_dimensions > n_features:
        raise ValueError(
            f"n_dimensions must be even and at most n_features={n_features}, but is {n_dimensions}."
        )
    rng = check_random_state(random_state)
    n_classes = n_seen + n_unseen
    vectors = rng.normal(size=(n_classes, n_dimensions))
    vectors = unit_rows(vectors)
    carrier, _ = np.linalg.qr(rng.normal(size=(n_features, n_dimensions)))

    label = np.repeat(np.arange(n_classes), n_images)
    pose = np.tile(np.arange(n_images) % n_poses, n_classes)
    turned = np.stack([turn(vectors, 2 * np.pi * p / n_poses) for p in range(n_poses)])
    features = turned[pose, label] @ carrier.T  # (n_classes * n_images, n_features)
    features += rng.normal(scale=noise / np.sqrt(n_features), size=features.shape)

    width = len(str(n_classes - 1))
    names = np.array([f"class {i:0{width}d}" for i in range(n_classes)])
    n_val = max(1, n_seen // 5)
    split = Split(
        train=tuple(names[: n_seen - n_val].tolist()),
        val=tuple(names[n_seen - n_val : n_seen].tolist()),
        test=tuple(names[n_seen:].tolist()),
    )
    return ZeroShotDataset(
        features=features.astype(np.float32),
        labels=names[label],
        embeddings={"att": ClassEmbeddings(names, vectors, name="att")},
        splits={"standard": split},
        images=np.array([f"{names[c]}, pose {p}" for c, p in zip(label, pose, strict=True)]),
        name="latent world",
        info={"licence": "synthetic", "n_poses": n_poses},
    )


def turn(vectors: np.ndarray, angle: float) -> np.ndarray:
    """Vectors rotated by `angle` in the planes of dimensions (0, 1), (2, 3), …"""
    first, second = vectors[..., 0::2], vectors[..., 1::2]
    turned = np.empty_like(vectors)
    turned[..., 0::2] = np.cos(angle) * first - np.sin(angle) * second
    turned[..., 1::2] = np.sin(angle) * first + np.cos(angle) * second
    return turned
