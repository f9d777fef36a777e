"""Any ONNX file as an encoder, run by onnxruntime.

Every picture is a run of its own in one thread, and several runs go on side by side. That is a
little faster than a batch shared by several threads, and a picture's vector then depends neither
on the number of threads nor on its neighbours in a batch. Opening an ONNX file runs no code.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.storage import FileFormatError
from latem.core.threads import run_all
from latem.features.encoder import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Encoder,
    Preprocessing,
    file_digest,
)
from latem.features.pictures import INSTALL

_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}


def onnxruntime() -> Any:
    """The module onnxruntime, with its telemetry off; the only place that imports it.

    Since version 1.29 it reports to its makers, and keeps a number for the device and a database
    in the user's cache folder. It reads the variable when it is imported. A value the user has set
    stays.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime as runtime
    except ImportError:
        raise ImportError(f"This encoder needs onnxruntime: {INSTALL}.") from None
    return runtime


def open_session(model: bytes | Path) -> Any:
    """Inference session of a graph, one thread per run, on the CPU."""
    runtime = onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(
        model if isinstance(model, bytes) else str(model),
        options,
        providers=["CPUExecutionProvider"],
    )


def run_pieces(
    session: Any, names: tuple[str, str], pieces: list[np.ndarray], n_threads: int | None
) -> list[np.ndarray]:
    """Output of each piece, the pieces side by side; `names` are of the input and the output."""
    given, wanted = names
    results: list[Any] = [None] * len(pieces)

    def run(i: int) -> None:
        (results[i],) = session.run([wanted], {given: pieces[i]})

    run_all(run, range(len(pieces)), n_threads)
    return results


class OnnxEncoder(Encoder):
    """Encoder from an ONNX file.

    Parameters
    ----------
    weights : path
        The file. Its first input takes pictures: batch × 3 × size × size or batch × size × size
        × 3, of type float, float16 or uint8 (which gets plain pixels).
    size : int, optional
        Side of the input in pixels; by default what the file says.
    mean, std : three floats
        See `Preprocessing`; needed unless the input is uint8.
    crop, interpolation
        See `Preprocessing`.
    output : str, optional
        Name of the output to take, by default the first: batch × features, or batch × features
        × height × width, which is averaged over the picture.
    n_threads : int, optional
    """

    name = "onnx"

    def __init__(
        self,
        *,
        weights: str | PathLike[str] | None = None,
        size: int | None = None,
        mean: Any = None,
        std: Any = None,
        crop: float = 0.875,
        interpolation: str = "bicubic",
        output: str | None = None,
        n_threads: int | None = None,
    ):
        if not isinstance(weights, str | PathLike):
            raise ValueError(
                f"Encoder 'onnx' needs weights, the path of an ONNX file, not {weights!r:.40}."
            )
        self.path = Path(weights)
        self.digest = file_digest(self.path)
        self.n_threads = n_threads
        self.versions = {"onnxruntime": onnxruntime().__version__}
        try:
            self._session = open_session(self.path)
        except Exception as error:  # onnxruntime has many kinds, and exports few of them
            raise FileFormatError(
                f"{self.path} cannot be opened as an ONNX file: {error}"
            ) from None
        side = self._check_input()
        if size is None and side is None:
            raise ValueError(f"{self.path} does not say how large its pictures are; give size.")
        if size is not None and side not in (None, size):
            raise ValueError(f"{self.path} takes pictures of {side} pixels, not of {size}.")
        if self._dtype == np.uint8:
            mean, std = mean or (0.0, 0.0, 0.0), std or (1.0, 1.0, 1.0)
        if mean is None or std is None:
            raise ValueError(
                f"{self.path} needs mean and std of its training pictures, for red, green and blue "
                f"counted from 0 to 1. ImageNet's, the most common: mean "
                f"{','.join(map(str, IMAGENET_MEAN))}, std {','.join(map(str, IMAGENET_STD))}."
            )
        side = side if size is None else size
        self.preprocessing = Preprocessing(side or 0, mean, std, crop, interpolation)
        outputs = [item.name for item in self._session.get_outputs()]
        if output is not None and output not in outputs:
            raise ValueError(f"{self.path} has no output {output!r}; it has {', '.join(outputs)}.")
        self.output = outputs[0] if output is None else output
        self.n_features = self._try_out()

    def _check_input(self) -> int | None:
        """Learn the input's name, type and layout; its side, if the file fixes it."""
        first, *others = self._session.get_inputs()
        shape = first.shape
        if others or len(shape) != 4 or 3 not in (shape[1], shape[3]) or first.type not in _TYPES:
            inputs = [f"{x.name} {x.type} {x.shape}" for x in (first, *others)]
            raise FileFormatError(
                f"{self.path} must have one input of pictures, batch × 3 × size × size or batch × "
                f"size × size × 3, float, float16 or uint8; it has {'; '.join(inputs)}."
            )
        self._input = first.name
        self._dtype = _TYPES[first.type]
        self._channels_first = shape[1] == 3
        self._length = shape[0] if isinstance(shape[0], int) else 1
        self._fixed_length = isinstance(shape[0], int)
        sides = {x for x in (shape[2:] if self._channels_first else shape[1:3]) if type(x) is int}
        if len(sides) > 1:
            raise FileFormatError(f"{self.path} takes pictures of {shape}; they must be square.")
        return sides.pop() if sides else None

    def _try_out(self) -> int:
        side = self.preprocessing.size
        try:
            made = self._run(np.zeros((1, side, side, 3), np.uint8))
        except Exception as error:
            raise ValueError(f"{self.path} failed on a blank picture: {error}") from None
        if made.ndim != 2 or made.dtype.kind != "f":
            raise ValueError(
                f"{self.path}: output {self.output!r} must be batch × features, not {made.dtype} "
                f"of shape {made.shape}; name another with output."
            )
        return made.shape[1]

    def _more_spec(self) -> dict[str, Any]:
        return {
            "weights": str(self.path.absolute()),
            "digest": self.digest,
            "output": self.output,
        }

    def encode_batch(self, batch: np.ndarray) -> np.ndarray:  # noqa: D102 - as in Encoder
        return self._run(batch).astype(np.float32, copy=False)

    def picture_graph(self) -> bytes:  # noqa: D102 - as in Encoder
        from latem.features.picture_graph import PicturePorts, picture_graph

        side = self.preprocessing.size
        ports = PicturePorts(
            taken=self._input,
            dtype=np.dtype(self._dtype),
            channels_first=self._channels_first,
            fixed=self._fixed_length,
            given=self.output,
            averaged=self._outputs(np.zeros((1, side, side, 3), np.uint8)).ndim == 4,
        )
        try:
            return picture_graph(self.path, ports, self.preprocessing, self.n_features)
        except ImportError:
            raise ImportError(f"This encoder needs onnx to be written down: {INSTALL}.") from None

    def _run(self, batch: np.ndarray) -> np.ndarray:
        vectors = self._outputs(batch)
        return vectors.mean(axis=(2, 3)) if vectors.ndim == 4 else vectors

    def _outputs(self, batch: np.ndarray) -> np.ndarray:
        """What the file itself makes of prepared pictures."""
        numbers = batch if self._dtype == np.uint8 else self.preprocessing.normalise(batch)
        if self._channels_first:
            numbers = numbers.transpose(0, 3, 1, 2)
        numbers = np.ascontiguousarray(numbers, dtype=self._dtype)
        n, length = len(numbers), self._length
        if n % length:  # the file fixes the number of pictures per run: fill up with blanks
            blanks = np.zeros((-n % length, *numbers.shape[1:]), self._dtype)
            numbers = np.concatenate([numbers, blanks])
        pieces = [numbers[i : i + length] for i in range(0, len(numbers), length)]
        made = run_pieces(self._session, (self._input, self.output), pieces, self.n_threads)
        return np.concatenate(made)[:n]
