"""Values in a graph compute what NumPy does."""

from importlib.metadata import version

import numpy as np
import pytest
from export_runs import evaluated, newest_opset
from scipy.spatial.distance import cdist
from scipy.special import softmax

from latem.core import arrays
from latem.export import graph as g

X = np.array([[3.0, -4.0, 0.0], [0.0, 0.0, 0.0], [1e-30, 2e-30, -2e-30], [0.1, 0.2, 0.3]])
M = np.arange(6.0).reshape(3, 2)

CASES = {
    "sums": (lambda x: 1 + x + X, lambda x: 1 + x + X),
    "differences": (lambda x: 1 - (x - 2) - X, lambda x: 1 - (x - 2) - X),
    "products": (lambda x: 2 * x * X, lambda x: 2 * x * X),
    "quotients": (lambda x: 1 / (x / 4 + 3), lambda x: 1 / (x / 4 + 3)),
    "minus": (lambda x: -x, lambda x: -x),
    "matrices": (lambda x: x @ M, lambda x: x @ M),
    "matrices from the left": (lambda x: X.T @ x, lambda x: X.T @ x),
    "transposed": (lambda x: x.T @ x, lambda x: x.T @ x),
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1, keepdims=True)),
    "max": (lambda x: x.max(0, keepdims=False), lambda x: x.max(0)),
    "min": (lambda x: x.min(-1), lambda x: x.min(-1, keepdims=True)),
    "argmax": (lambda x: x.argmax(1), lambda x: x.argmax(1)),
    "columns": (lambda x: x.columns([2, 0]), lambda x: x[:, [2, 0]]),
    "where": (lambda x: g.where(x > 0, x, -1), lambda x: np.where(x > 0, x, -1)),
    "less": (lambda x: g.where(x < 0.2, x, -1), lambda x: np.where(x < x.dtype.type(0.2), x, -1)),
    "not": (lambda x: g.where(~(x > 0), 5, x), lambda x: np.where(x > 0, x, 5)),
    "equal": (lambda x: g.where(x.equals(0), 7, x), lambda x: np.where(x == 0, 7, x)),
    "functions": (
        lambda x: g.exp(g.tanh(x)) + g.log(1 + g.square(x)) + g.sqrt(g.absolute(x)),
        lambda x: np.exp(np.tanh(x)) + np.log(1 + x**2) + np.sqrt(np.abs(x)),
    ),
    "limits": (lambda x: g.at_least(g.at_most(x, 0.2), 0), lambda x: np.clip(x, 0, 0.2)),
    "softmax": (lambda x: g.softmax(x), lambda x: softmax(x, axis=1)),
    "unit rows": (lambda x: g.unit_rows(x), lambda x: arrays.unit_rows(x)),
    "settled": (lambda x: g.settled(x, 0.7), lambda x: arrays.settled(x, 0.7)),
    "settled, no scale": (lambda x: g.settled(x, 0) + 0, lambda x: arrays.settled(x, 0)),
    "distances": (
        lambda x: g.squared_distances(x, X),
        lambda x: cdist(x, X, "sqeuclidean"),
    ),
    "the largest": (
        lambda x: g.largest_kept(x, 2),
        lambda x: np.where(x >= np.sort(x, axis=1)[:, [1]], x, 0),
    ),
}


RUNTIME = tuple(map(int, version("onnxruntime").split(".")[:2]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_values_compute_what_numpy_does(case, dtype):
    formula, expected = CASES[case]
    if case == "transposed" and dtype is np.float64 and RUNTIME < (1, 26):
        pytest.skip("this onnxruntime fuses x.T @ x into a node it has for float32 only")
    for opset in (13, 17, newest_opset()):
        graph = g.Graph(opset)
        x = graph.input("x", dtype, ["n", 3])
        made = formula(x)
        found = evaluated(graph, made, x=X.astype(dtype))
        assert found.dtype == (np.int64 if case == "argmax" else dtype)
        wanted = expected(X.astype(dtype).astype(np.float64))
        if case == "max":
            found = found.ravel()
        rounding = 10 * np.finfo(dtype).eps
        np.testing.assert_allclose(found, wanted, rtol=rounding, atol=20 * rounding)


def test_equal_constants_are_kept_once():
    graph = g.Graph(17)
    x = graph.input("x", np.float32, ["n", 3])
    _ = (x @ M) @ M.T + (x @ M) @ M.T + 1 + 1
    assert len(graph.constants) == 3
    assert graph.size() == 2 * 24 + 4


def test_an_input_may_have_a_default():
    for given, expected in (({}, 3), ({"extra": np.full((1, 2), 5, np.float32)}, 6)):
        graph = g.Graph(17)
        x = graph.input("x", np.float32, ["n", "m"])
        extra = graph.optional_input("extra", np.full((1, 2), 2, np.float32), ["k", "m"])
        found = evaluated(graph, x + extra, x=np.ones((1, 2), np.float32), **given)
        np.testing.assert_array_equal(found, np.full((1, 2), expected, np.float32))


def test_values_of_different_types_do_not_meet():
    graph = g.Graph(17)
    x = graph.input("x", np.float32, ["n"])
    with pytest.raises(AssertionError, match="float32 meets float64"):
        _ = x + x.astype(np.float64)
    assert x.astype(np.float32) is x


def test_products_with_turned_matrices_in_double_precision_are_one_node():
    """onnxruntime 1.17 joins Transpose and MatMul into a node that it has no double form of."""
    for dtype, kinds in ((np.float32, ["Transpose", "MatMul"]), (np.float64, ["Einsum"])):
        graph = g.Graph(17)
        x = graph.input("x", dtype, ["n", 3])
        made = x @ x.T
        assert [node.op_type for node in graph.nodes] == kinds
        found = evaluated(graph, made, x=X.astype(dtype))
        np.testing.assert_allclose(found, X @ X.T, rtol=1e-5, atol=1e-12)
    graph = g.Graph(17)
    x = graph.input("x", np.float64, ["n", 3])
    maps = np.arange(12.0).reshape(2, 3, 2)
    found = evaluated(graph, (x @ maps) @ x.columns([0, 1]).T, x=X)
    np.testing.assert_allclose(found, (X @ maps) @ X[:, :2].T, rtol=1e-12)
