"""`export_onnx`: a fitted model as one ONNX file that any runtime can run.

The graph holds everything between features and answers: scaling, what is done to class vectors,
the model itself, the penalty on seen classes and the temperature. Classes stay open: the table that
describes them is an input, with the model's own classes as its default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core import atomic, storage
from latem.core.messages import first_few
from latem.core.slim import needed
from latem.export.class_side import Classes
from latem.export.graph import INSTALL, OLDEST_OPSET, Graph, Value, onnx_module, softmax, where
from latem.export.pictures import with_encoder
from latem.export.translators import (
    inner_model,
    refuse_unknown,
    score_in_graph,
    tables_of,
)
from latem.export.verdicts import add_verdicts
from latem.models.answers import VERDICTS
from latem.models.checks import check_is_model
from latem.models.fusion import LateFusion

KEY = "latem"  # of the JSON text among the file's metadata
FORMAT_VERSION = 1
OPSET = 17
_LARGEST = 2**31 - 2**20  # bytes; a protobuf message holds less than two gigabytes
_OLDEST_IR = 8
_N_ROWS = 16  # of random images that a graph is tried on
_N_PICTURES = 2
_TOLERANCE = 1e-3  # of the largest score, which may itself be a small difference of large numbers


@dataclass(frozen=True)
class OnnxExport:
    """What was written.

    Attributes
    ----------
    path : Path
    names : tuple
        Classes that are the default candidates, in the order of the columns of scores.
    inputs, outputs : tuple of str
    opset : int
    n_bytes : int
        Size of the file.
    difference : float or None
        Largest difference from the model's own scores on random images, in shares of the largest
        score; None if it was not checked.
    notes : tuple of str
        Sentences that deserve a look.
    """

    path: Path
    names: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int
    n_bytes: int
    difference: float | None
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The same in sentences."""
        lines = [
            f"{len(self.names)} classes; from {', '.join(self.inputs)} to "
            f"{', '.join(self.outputs)}; opset {self.opset}; {self.n_bytes / 1e6:.2f} MB."
        ]
        if self.difference is not None:
            lines.append(
                f"Checked with onnxruntime on random images: scores differ from the model's by at "
                f"most {self.difference:.1e} of the largest."
            )
        return lines


def export_onnx(
    model: Any,
    path: str | PathLike[str],
    *,
    classes: Any = "unseen",
    opset: int = OPSET,
    pictures: bool = False,
    open_classes: bool = True,
    check: bool = True,
    encoder_options: Mapping[str, Any] | None = None,
) -> OnnxExport:
    """Write a fitted model as an ONNX graph.

    Parameters
    ----------
    model : a fitted model
    path : path
        File to write.
    classes
        The default candidates; see `decision_function`.
    opset : int
        Version of ONNX's operators, from 13 to the newest that onnx knows.
    pictures : bool
        Whether the graph begins with pixels: the model's encoder is put before it. It must be one
        that is an ONNX graph itself, efficientnet-lite0 or an ONNX file.
    open_classes : bool
        Whether the class table is an input, so that whoever runs the file can give other classes.
        If not, runtimes compute the class side once, when they open the file, which makes single
        images quicker. A `LateFusion` has fixed classes always.
    check : bool
        Whether to run the graph on random images, if onnxruntime is installed, and to write
        nothing if its scores are not the model's.
    encoder_options : mapping, optional
        Options for the encoder, such as a local weight file.

    Returns
    -------
    OnnxExport

    Notes
    -----
    Inputs: `features` (n, n_features) float32, or `pictures` (n, size, size, 3) uint8; and, each
    with a default, `class_table` (C, n_dimensions) float32 (of open classes), `seen` (C or 1)
    bool, `seen_penalty` (1) float32. Outputs: `scores` (n, C), as `decision_function` gives them;
    `probabilities` (n, C) and `best` (n), by scores less the penalty on seen classes, as `answer`
    has them; `best_map` (n, C) of a model with several maps. Of a model that can tell outsiders
    also `verdict` (n), 0 for named, 1 for doubtful and 2 for none of these, and `strangeness` (n);
    then `rivals` (n_seen) bool (of open classes) and `false_accept_rate` (1) float32 are inputs.

    Examples
    --------
    >>> import tempfile, latem
    >>> world = latem.make_latent_world(n_poses=1, random_state=0)
    >>> model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = latem.export_onnx(model, f"{folder}/model.onnx")
    >>> written.outputs
    ('scores', 'probabilities', 'best')
    """
    check_is_model(model, "export_onnx")
    onnx = onnx_module()
    newest = onnx.defs.onnx_opset_version()
    if isinstance(opset, bool) or not isinstance(opset, int) or not OLDEST_OPSET <= opset <= newest:
        raise ValueError(
            f"opset must be a whole number from {OLDEST_OPSET} to {newest}, the newest that onnx "
            f"{onnx.__version__} knows, not {opset!r}."
        )
    refuse_unknown(model)
    atomic.check_target(path)
    if Path(path).suffix.lower() != ".onnx":
        raise ValueError(f"{path} must end in .onnx, by which programs know such files.")
    classes = model.settled(classes)
    encoder = _encoder(model, encoder_options) if pictures else None
    several = isinstance(inner_model(model), LateFusion)
    graph, about = _build(model, classes, opset, open_classes=open_classes and not several)
    made = _as_model(graph, about | _about_pictures(encoder))
    if encoder is not None:
        made = with_encoder(made, encoder, opset)
    onnx.checker.check_model(made)
    content = made.SerializeToString()
    difference = _difference(model, classes, content, encoder, opset) if check else None
    with atomic.atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return OnnxExport(
        Path(path),
        tuple(about["classes"]),
        tuple(one.name for one in made.graph.input),
        tuple(one.name for one in made.graph.output),
        opset,
        len(content),
        difference,
        tuple(_notes(model, difference, check)),
    )


def _build(
    model: Any, classes: Any, opset: int, *, open_classes: bool
) -> tuple[Graph, dict[str, Any]]:
    """The graph from features on, and what the file says about itself."""
    graph = Graph(opset)
    names = model.candidate_names(classes)
    seen = np.isin(names, model.classes_)
    mixed = bool(seen.any() and not seen.all())
    features = graph.input("features", np.float32, ["n", model.n_features_in_])
    asked = names.tolist() if isinstance(inner_model(model), LateFusion) else classes
    tables = [one.class_view_.candidates(asked).table for one in tables_of(model)]
    arrays = [_single(table) for table in tables]
    if open_classes:
        shape: list[int | str] = ["C", arrays[0].shape[1]]
        values = [graph.optional_input("class_table", arrays[0], shape)]
    else:
        values = [graph.constant(array, np.float32) for array in arrays]
    flags = graph.optional_input("seen", seen if mixed else seen[:1], ["S"])
    penalty = np.array([getattr(model, "seen_penalty_", 0.0) if mixed else 0.0], np.float32)
    taken = graph.optional_input("seen_penalty", penalty, [1])
    found = score_in_graph(model, features, [Classes(value, flags) for value in values])
    columns: int | str = "C" if open_classes else len(names)
    temperature = getattr(model, "temperature_", 1.0)
    plain, first = _answer(graph, found.scores, flags, taken, temperature, columns)
    if found.best_map is not None:
        graph.output("best_map", found.best_map, ["n", columns])
    own = Classes(values[0], flags)
    add_verdicts(model, names, features, own, plain, first, open_classes=open_classes)
    if graph.size() > _LARGEST:
        raise ValueError(
            f"The graph would take {graph.size() / 1e9:.1f} GB, and an ONNX file holds less than "
            f"2 GB: export fewer classes, or a model with fewer maps or features."
        )
    return graph, _about(model, names, seen, tables)


def _answer(
    graph: Graph,
    scores: Value,
    seen: Value,
    penalty: Value,
    temperature: float,
    columns: int | str,
) -> tuple[Value, Value]:
    """Outputs of a graph, by plain scores; gives these and the best probabilities, as doubles."""
    graph.output("scores", scores.astype(np.float32), ["n", columns])
    plain = scores.astype(np.float64)
    exact = plain - where(seen, penalty.astype(np.float64), 0)
    sure = softmax(exact / float(temperature))
    graph.output("probabilities", sure.astype(np.float32), ["n", columns])
    graph.output("best", exact.argmax(1), ["n"])
    return plain, sure.max(-1)


def _single(table: Any) -> np.ndarray:
    """Vectors of a class table in single precision."""
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(table.vectors, np.float32)
    large = table.names[~np.isfinite(vectors).all(axis=1)].tolist()
    if large:
        raise ValueError(
            f"The descriptions of {first_few(large)} hold numbers too large for float32, in which "
            f"a graph takes class tables; divide the table by a constant and train again."
        )
    return vectors


def _about(model: Any, names: np.ndarray, seen: np.ndarray, tables: list[Any]) -> dict[str, Any]:
    """What the file says about itself, as plain data."""
    known = {
        name: float(getattr(model, f"{name}_"))
        for name in ("temperature", "seen_penalty")
        if hasattr(model, f"{name}_")
    }
    return {
        "format": FORMAT_VERSION,
        "model": type(model).__name__,
        "classes": names.tolist(),
        "seen": seen.tolist(),
        "tables": [
            {"name": one.name, "columns": None if one.columns is None else list(one.columns)}
            for one in tables
        ],
        "n_features": int(model.n_features_in_),
        "feature_names": None if _feature_names(model) is None else list(_feature_names(model)),
        "encoder": None if model.encoder_ is None else _without_folders(model.encoder_),
        "calibration": known,
        **_about_verdicts(model),
        "training_digest": model.training_digest_,
        "versions": storage.library_versions() | {"onnx": onnx_module().__version__},
    }


def _about_verdicts(model: Any) -> dict[str, Any]:
    """What the numbers of the output `verdict` mean, and what the entries of `rivals` are."""
    if not hasattr(model, "acceptance_"):
        return {}
    return {"verdicts": list(VERDICTS), "learned": model.classes_.tolist()}


def _feature_names(model: Any) -> Any:
    """Names of the features, if the model was fitted to a DataFrame."""
    return getattr(tables_of(model)[0], "feature_names_in_", None)


def _without_folders(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Spec of an encoder that says nothing of the machine: a weight file by its name alone."""
    weights = {"weights": Path(str(spec["weights"])).name} if "weights" in spec else {}
    return {**spec, **weights}


def _encoder(model: Any, options: Mapping[str, Any] | None) -> Any:
    from latem.features.encoders import load_encoder

    if model.encoder_ is None:
        raise ValueError(
            f"This {type(model).__name__} does not know which encoder made its features, so the "
            f"graph cannot begin with pictures; train it on a dataset made by latem embed images, "
            f"or export it without pictures."
        )
    return load_encoder(model.encoder_, **dict(options or {}))


def _about_pictures(encoder: Any) -> dict[str, Any]:
    return {} if encoder is None else {"pictures": True}


def _as_model(graph: Graph, about: dict[str, Any]) -> Any:
    helper = graph.onnx.helper
    made = helper.make_graph(
        graph.nodes, KEY, graph.inputs, graph.outputs, graph.constants, doc_string="latem model"
    )
    opsets = [helper.make_opsetid("", graph.opset)]
    version = max(_OLDEST_IR, helper.find_min_ir_version_for(opsets, ignore_unknown=True))
    model = helper.make_model(made, opset_imports=opsets, ir_version=version, producer_name="latem")
    helper.set_model_props(model, {KEY: json.dumps(about, ensure_ascii=False, allow_nan=False)})
    return model


def _difference(model: Any, classes: Any, content: bytes, encoder: Any, opset: int) -> float | None:
    """Largest difference of scores on random images; refuses a graph that does not agree."""
    from latem.features.onnx_encoder import open_session

    rng = np.random.default_rng(0)
    if encoder is not None:
        side = encoder.preprocessing.size
        given = rng.integers(0, 256, (_N_PICTURES, side, side, 3), dtype=np.uint8)
        features, name = encoder.encode_batch(given), "pictures"
    else:
        features = given = _random_features(model, rng)
        name = "features"
    try:
        session = open_session(content)
    except ImportError:
        return None
    except Exception as error:  # onnxruntime's errors have no common kind
        raise ValueError(
            f"The installed onnxruntime cannot run this graph (opset {opset}): {error}. Choose "
            f"another opset, such as {OPSET}, or check=False (--no-check)."
        ) from None
    (scores,) = session.run(["scores"], {name: given})
    names = _feature_names(model)
    named = features
    if names is not None:
        named = needed("pandas", "Named features").DataFrame(features, columns=names)
    expected = model.class_scores(named, classes)
    if scores.shape != expected.shape:
        raise RuntimeError(f"The graph gave scores of shape {scores.shape}, not {expected.shape}.")
    largest = float(np.abs(expected).max()) or 1.0
    difference = float(np.abs(scores - expected).max()) / largest
    if not difference <= _TOLERANCE:
        raise ValueError(
            f"The graph's scores differ from those of the model by {difference:.1e} of the "
            f"largest: its numbers are too large or too small for float32, in which a graph takes "
            f"features and class tables. Nothing was written."
        )
    return difference


def _random_features(model: Any, rng: np.random.Generator) -> np.ndarray:
    """Images such as a model might be given, by the statistics of its scaling."""
    noise = rng.normal(size=(_N_ROWS, model.n_features_in_))
    scaler = tables_of(model)[0].scaler_
    if scaler.kind in ("zscore", "zmax"):
        size = 0.2 if scaler.kind == "zmax" else 1.0  # the largest training entry is 1 there
        return (scaler.shift + size * noise / scaler.scale).astype(np.float32)
    return np.abs(noise).astype(np.float32)


def _notes(model: Any, difference: float | None, check: bool) -> list[str]:
    notes = []
    if not hasattr(model, "temperature_"):
        notes.append(
            "This model was never calibrated: its probabilities have temperature 1 and say little "
            "about how often answers are right."
        )
    if check and difference is None:
        notes.append(f"Not checked, because onnxruntime is not installed: {INSTALL}.")
    return notes
