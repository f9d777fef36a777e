"""Class vectors and scaled images in a graph are those of the library."""

import itertools

import numpy as np
import pytest
from export_runs import evaluated

from latem import ClassEmbeddings
from latem.export.class_side import Classes, gaussian_kernel, scaled
from latem.export.graph import Graph
from latem.models.class_kernels import gaussian_kernel as plain_kernel
from latem.models.class_view import ClassView
from latem.models.scaling import SCALINGS, FeatureScaler

RNG = np.random.default_rng(0)
NAMES = [f"class {i}" for i in range(9)]
VECTORS = RNG.random((9, 4)).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize(
    ("normalise", "centre", "width", "balance"),
    itertools.product([True, False], [True, False], [None, 0.6], [True, False]),
)
def test_class_vectors(normalise, centre, width, balance):
    view = ClassView(
        ClassEmbeddings(NAMES, VECTORS), np.array(NAMES[:6]), normalise, dtype="float64"
    )
    view = view.centred() if centre else view
    view = view if width is None else view.with_kernel(width)
    if balance:
        root = RNG.normal(size=(view.width, view.width))
        view = view.balanced(root @ root.T)
    graph = Graph(17)
    table = graph.input("table", np.float32, ["C", 4])
    classes = Classes(table, graph.constant([False], bool))
    found = evaluated(graph, classes.vectors(view), table=VECTORS.astype(np.float32))
    expected = view.candidates("all").vectors
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_a_class_whose_scores_are_nothing_is_not_balanced():
    view = ClassView(
        ClassEmbeddings(["a", "b"], [[1.0, 0.0], [0.0, 1.0]]), np.array(["a"]), dtype="float64"
    ).balanced(np.diag([4.0, 0.0]))
    graph = Graph(17)
    table = graph.input("table", np.float32, ["C", 2])
    made = Classes(table, graph.constant([False], bool)).vectors(view)
    found = evaluated(graph, made, table=np.eye(2, dtype=np.float32))
    np.testing.assert_allclose(found, [[0.5, 0], [0, 1]])
    np.testing.assert_allclose(found, view.candidates("all").vectors)


def test_the_kernel():
    graph = Graph(17)
    x = graph.input("x", np.float64, ["C", 4])
    found = evaluated(graph, gaussian_kernel(x, VECTORS[:3], 0.7), x=VECTORS)
    np.testing.assert_allclose(found, plain_kernel(VECTORS, VECTORS[:3], 0.7), atol=2e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [*SCALINGS, None])
def test_scaled_images(kind, dtype):
    X = RNG.normal(size=(20, 5)) * [1, 2, 3, 1e-3, 0] + 1
    scaler = FeatureScaler.fit(X, kind)
    graph = Graph(17)
    x = graph.input("x", dtype, ["n", 5])
    found = evaluated(graph, scaled(x, scaler) + 0, x=X.astype(dtype))
    expected = scaler.transform(X.astype(dtype), dtype)
    near = 1e-4 if dtype == np.float32 else 1e-12  # one column varies by a thousandth of its mean
    np.testing.assert_allclose(found, expected, atol=near)
