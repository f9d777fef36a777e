"""An ONNX graph in the making, written like NumPy.

A `Value` stands for an array that the graph will compute: ``(X - mean) @ components`` adds two
nodes and gives the value of the second. So the formula of a model reads here as it does in the
model. Operators that changed between opsets are written in the form of the graph's own.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np

OLDEST_OPSET = 13
_AXES_ARE_INPUTS = 18  # opset from which reductions other than sums take axes as an input
_BY_ROWS = "...k,ck->...c"  # a product with a matrix whose rows become columns
INSTALL = "pip install 'latem[onnx]'"


def onnx_module() -> Any:
    """The module onnx; an error says how to install it."""
    try:
        import onnx
    except ImportError:
        raise ImportError(f"Export needs onnx: {INSTALL}.") from None
    return onnx


class Graph:
    """Nodes and constants of a graph; values are known by their names.

    Parameters
    ----------
    opset : int
        Version of ONNX's operators.
    """

    def __init__(self, opset: int):
        self.opset = opset
        self.onnx = onnx_module()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], Value] = {}

    def input(self, name: str, dtype: Any, shape: list[int | str]) -> Value:
        """An array that is given when the graph is run."""
        self.inputs.append(self._info(name, dtype, shape))
        return Value(self, name, np.dtype(dtype))

    def optional_input(self, name: str, default: np.ndarray, shape: list[int | str]) -> Value:
        """An array that may be given when the graph is run, and what it is otherwise."""
        self.constants.append(self.onnx.numpy_helper.from_array(default, name))
        return self.input(name, default.dtype, shape)

    def output(self, name: str, value: Value, shape: list[int | str]) -> None:
        """Give a value out under a name."""
        given = [value.name]
        self.nodes.append(self.onnx.helper.make_node("Identity", given, [name]))
        self.outputs.append(self._info(name, value.dtype, shape))

    def constant(self, array: Any, dtype: Any) -> Value:
        """A value that is part of the graph; equal ones are kept once."""
        numbers = np.array(array, dtype=dtype, order="C")
        key = (numbers.dtype.str, numbers.shape, hashlib.sha256(numbers.tobytes()).digest())
        if key not in self._known:
            name = f"c{len(self.constants)}"
            self.constants.append(self.onnx.numpy_helper.from_array(numbers, name))
            self._known[key] = Value(self, name, numbers.dtype)
        return self._known[key]

    def node(self, kind: str, *inputs: Value, dtype: Any = None, **attributes: Any) -> Value:
        """What an operator makes of some values; of the first one's type, or of `dtype`."""
        given = [value.name for value in inputs]  # asking for a name may add a node
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, given, [name], **attributes))
        return Value(self, name, inputs[0].dtype if dtype is None else np.dtype(dtype))

    def reduced(self, kind: str, value: Value, axis: int, *, keepdims: bool) -> Value:
        """A reduction along one axis."""
        if kind == "ReduceSum" or self.opset >= _AXES_ARE_INPUTS:
            axes = self.constant([axis], np.int64)
            return self.node(kind, value, axes, keepdims=int(keepdims))
        return self.node(kind, value, axes=[axis], keepdims=int(keepdims))

    def size(self) -> int:
        """Bytes that the constants take."""
        return sum(len(tensor.raw_data) for tensor in self.constants)

    def _info(self, name: str, dtype: Any, shape: list[int | str]) -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)


class Value:
    """An array that a graph computes; arithmetic adds nodes to the graph.

    Parameters
    ----------
    graph : Graph
    name : str
    dtype : numpy dtype
        Constants that it meets are taken in the same type; values must have it already.
    """

    __array_ufunc__ = None  # NumPy leaves ``array @ value`` to this class

    name: str

    def __init__(self, graph: Graph, name: str, dtype: np.dtype):
        self.graph, self.name, self.dtype = graph, name, dtype

    def _other(self, other: Any) -> Value:
        if not isinstance(other, Value):
            return self.graph.constant(other, self.dtype)
        assert other.dtype == self.dtype, f"{self.dtype} meets {other.dtype}"
        return other

    def _with(self, kind: str, other: Any, dtype: Any = None) -> Value:
        return self.graph.node(kind, self, self._other(other), dtype=dtype)

    def __add__(self, other: Any) -> Value:
        return self._with("Add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Value:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Value:
        return self._other(other) - self

    def __mul__(self, other: Any) -> Value:
        return self._with("Mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Value:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._other(other) / self

    def __neg__(self) -> Value:
        return self.graph.node("Neg", self)

    def __matmul__(self, other: Any) -> Value:
        if isinstance(other, _Turned) and self.dtype == np.float64:
            return self.graph.node("Einsum", self, other.rows, equation=_BY_ROWS)
        return self._with("MatMul", other)

    def __rmatmul__(self, other: Any) -> Value:
        return self._other(other) @ self

    def __gt__(self, other: Any) -> Value:
        return self._with("Greater", other, dtype=bool)

    def __lt__(self, other: Any) -> Value:
        return self._with("Less", other, dtype=bool)

    def __invert__(self) -> Value:
        return self.graph.node("Not", self)

    def equals(self, other: Any) -> Value:
        """Where both are the same, as a value of truths."""
        return self._with("Equal", other, dtype=bool)

    @property
    def T(self) -> Value:
        """Rows as columns, of a matrix."""
        return _Turned(self)

    def astype(self, dtype: Any) -> Value:
        """The same in another type."""
        dtype = np.dtype(dtype)
        if dtype == self.dtype:
            return self
        kind = self.graph.onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return self.graph.node("Cast", self, dtype=dtype, to=kind)

    def sum(self, axis: int, *, keepdims: bool = True) -> Value:
        """Sum along an axis."""
        return self.graph.reduced("ReduceSum", self, axis, keepdims=keepdims)

    def max(self, axis: int, *, keepdims: bool = True) -> Value:
        """Largest number along an axis."""
        return self.graph.reduced("ReduceMax", self, axis, keepdims=keepdims)

    def min(self, axis: int, *, keepdims: bool = True) -> Value:
        """Smallest number along an axis."""
        return self.graph.reduced("ReduceMin", self, axis, keepdims=keepdims)

    def argmax(self, axis: int) -> Value:
        """Place of the largest number along an axis, of equals the first."""
        return self.graph.node("ArgMax", self, dtype=np.int64, axis=axis, keepdims=0)

    def columns(self, places: Any) -> Value:
        """Some columns of a matrix, or some entries of a vector, by number."""
        kept = self.graph.constant(places, np.int64)
        return self.graph.node("Gather", self, kept, axis=-1)


class _Turned(Value):
    """A matrix with rows as columns; its node is made when it is used as such.

    A product with one in double precision is written without it: some versions of onnxruntime join
    the two nodes into one that they can run in single precision only.
    """

    def __init__(self, rows: Value):
        self.rows, self.graph, self.dtype = rows, rows.graph, rows.dtype

    @functools.cached_property
    def name(self) -> str:  # type: ignore[override]
        return self.graph.node("Transpose", self.rows, perm=[1, 0]).name


def exp(value: Value) -> Value:
    """The exponential function."""
    return value.graph.node("Exp", value)


def log(value: Value) -> Value:
    """The natural logarithm."""
    return value.graph.node("Log", value)


def absolute(value: Value) -> Value:
    """Without the sign."""
    return value.graph.node("Abs", value)


def tanh(value: Value) -> Value:
    """The hyperbolic tangent."""
    return value.graph.node("Tanh", value)


def sqrt(value: Value) -> Value:
    """The square root."""
    return value.graph.node("Sqrt", value)


def square(value: Value) -> Value:
    """The square."""
    return value * value


def at_least(value: Value, least: float) -> Value:
    """Nothing below a number."""
    return value.graph.node("Max", value, value.graph.constant(least, value.dtype))


def at_most(value: Value, most: float) -> Value:
    """Nothing above a number."""
    return value.graph.node("Min", value, value.graph.constant(most, value.dtype))


def where(truth: Value, yes: Any, no: Any) -> Value:
    """One value where something holds, another one elsewhere; at least one is a `Value`."""
    kind = yes if isinstance(yes, Value) else no
    parts = [one if isinstance(one, Value) else kind.graph.constant(one, kind.dtype)
             for one in (yes, no)]  # fmt: skip
    return kind.graph.node("Where", truth, *parts, dtype=kind.dtype)


def softmax(value: Value) -> Value:
    """Exponentials along the last axis, adding up to one."""
    return value.graph.node("Softmax", value, axis=-1)


def unit_rows(rows: Value) -> Value:
    """Rows divided by their lengths, as `latem.core.arrays.unit_rows` does it."""
    largest = absolute(rows).max(-1)
    rows = rows / where(largest.equals(0), 1, largest)
    lengths = sqrt(square(rows).sum(-1))
    return rows / where(lengths.equals(0), 1, lengths)


def settled(values: Value, scale: float = 1.0) -> Value:
    """Numbers rounded as `latem.core.arrays.settled` does it."""
    if scale <= 0:
        return values
    digits = values / scale * 1e10
    return values.graph.node("Round", digits) / 1e10 * scale


def squared_distances(vectors: Value, others: np.ndarray) -> Value:
    """‖a - b‖² of rows and constant rows, of shape (n_rows, n_others)."""
    squares = square(vectors).sum(-1) + np.square(others).sum(axis=1)
    return at_least(squares - 2 * (vectors @ others.T), 0)


def largest_kept(values: Value, k: int) -> Value:
    """The k largest numbers of each row; zeros elsewhere."""
    graph = values.graph
    top, places = f"{values.name}.top", f"{values.name}.places"
    given = [values.name, graph.constant([k], np.int64).name]
    graph.nodes.append(graph.onnx.helper.make_node("TopK", given, [top, places], axis=-1))
    return graph.node(
        "ScatterElements",
        *(values * 0, Value(graph, places, np.dtype(np.int64)), Value(graph, top, values.dtype)),
        axis=1,
    )
