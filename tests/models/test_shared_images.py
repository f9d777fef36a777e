"""Images that several closed forms learn from."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from latem import ESZSL, EXEM, LatEm, make_latent_world
from latem.models import shared_images
from latem.models.latem import TUNED
from latem.models.normal_equations import ImageSums
from latem.models.scaling import FeatureScaler
from latem.models.shared_images import SharedImages

MODELS = {
    "closed form": lambda t: ESZSL(t, gamma=3.0, feature_scaling="l2-centered"),
    "other labels": lambda t: ESZSL(t, labels="±1", feature_scaling="l2-centered"),
    "kernel": lambda t: ESZSL(
        t, class_kernel=0.7, center_classes=True, balance_classes=True,
        feature_scaling="l2-centered",
    ),
    "ranking": lambda t: LatEm(t, **TUNED, random_state=3),
    "paper": lambda t: LatEm(
        t, n_maps=2, n_epochs=3, feature_scaling="l2-centered", random_state=3
    ),
    "exemplars": lambda t: EXEM(t, gamma=1.0),
    "whitened": lambda t: EXEM(t, neighbour="whitened", center_classes=True),
}  # fmt: skip


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=15, n_images=5, noise=0.5, random_state=0)


def shared(X, y, scaling="l2-centered"):
    _, codes = np.unique(y, return_inverse=True)
    return SharedImages(X, codes, codes.max() + 1, FeatureScaler.fit(X, scaling))


@pytest.mark.parametrize("scaling", ["l2-centered", "zmax", None])
def test_sums_and_axes_are_those_of_the_scaled_images(world, scaling):
    X, y = world.training()
    images = shared(X, y, scaling)
    scaled = images.scaler.transform(X, np.float64)
    np.testing.assert_allclose(images.sums.moment.total, scaled.T @ scaled, atol=1e-9)
    assert images.sums.moment.n_images == len(X)
    for c, name in enumerate(np.unique(y)):
        np.testing.assert_allclose(
            images.sums.by_class[c], scaled[y == name].sum(axis=0), atol=1e-9
        )
    np.testing.assert_allclose(images.principal.Z, (scaled - scaled.mean(0)) @ images.principal.Q)
    own = PCA().fit(scaled).explained_variance_ * (len(X) - 1)
    np.testing.assert_allclose(images.principal.eigenvalues[::-1][:5], own[:5])


def test_sums_do_not_depend_on_the_blocks_they_are_made_in():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(2500, 3)), rng.integers(0, 4, 2500)
    sums = ImageSums.over(X, codes, 4, FeatureScaler.fit(X, None))
    np.testing.assert_allclose(sums.moment.total, X.T @ X)
    np.testing.assert_allclose(sums.by_class, [X[codes == c].sum(axis=0) for c in range(4)])
    values, vectors = sums.axes
    np.testing.assert_allclose((vectors * values) @ vectors.T, X.T @ X)
    assert (np.diff(values) >= 0).all()


def test_what_is_shared_is_computed_once(world, monkeypatch):
    made = []

    class Counted(ImageSums):
        def __init__(self, *args):
            made.append(args)
            super().__init__(*args)

    monkeypatch.setattr(shared_images, "ImageSums", Counted)
    images = shared(*world.training())
    assert images.sums is images.sums
    assert images.principal is images.principal
    assert len(made) == 1


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_learning_from_shared_images_is_fitting(world, name, dtype):
    X, y = world.training()
    alone = MODELS[name](world.embeddings["att"]).set_params(dtype=dtype)
    alone.records_training = False
    alone.fit(X, y)
    images = shared(X, y)
    for one in sorted(MODELS):  # whoever asked for the sums and axes before
        model = MODELS[one](world.embeddings["att"]).set_params(dtype=dtype)
        model.records_training = False
        model.check_training_images(X, y)
        model.prepare(X, y)
        model.learn(images)
        if one == name:
            found, expected = model.pack(), alone.pack()
            assert found[1] == expected[1]
            assert found[0].keys() == expected[0].keys()
            for key, array in found[0].items():
                np.testing.assert_array_equal(array, expected[0][key])
