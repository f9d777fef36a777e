"""How long an exported model takes for one image, with open and with fixed classes.

A committee of the usual four members with 150 seen and 50 unseen classes, 312 attributes and 1024
features (the sizes of CUB), run by onnxruntime in one thread. Beside it latem's own answer, for
which the classes are prepared.
"""

import tempfile
from pathlib import Path

import numpy as np
from answer import best
from machine import keep, show

from latem import Committee, export_onnx
from latem.features.onnx_encoder import open_session

N_SEEN, N_CLASSES, N_FEATURES, N_DIMENSIONS = 150, 200, 1024, 312
N_IMAGES = 8  # of every seen class


def fitted():
    rng = np.random.default_rng(0)
    names = [f"class {i}" for i in range(N_CLASSES)]
    vectors = rng.random((N_CLASSES, N_DIMENSIONS))
    y = np.repeat(np.arange(N_SEEN), N_IMAGES)
    X = vectors[y] @ rng.normal(size=(N_DIMENSIONS, N_FEATURES)) / 10
    X = (X + rng.normal(size=X.shape)).astype(np.float32)
    model = Committee((names, vectors), random_state=0, n_threads=1)
    return model.fit(X, np.array(names)[y]), X


def main():
    model, X = fitted()
    found = {"latem_ms": 1e3 * best(lambda: model.decision_function(X[:1], "all"), 20)}
    with tempfile.TemporaryDirectory() as folder:
        for name, open_classes in (("open", True), ("fixed", False)):
            path = Path(folder) / f"{name}.onnx"
            export_onnx(model, path, classes="all", open_classes=open_classes)
            session = open_session(path.read_bytes())
            run = lambda s=session: s.run(["best", "probabilities"], {"features": X[:1]})  # noqa: E731
            found[f"{name}_ms"] = 1e3 * best(run, 20)
    found["ratio"] = found["open_ms"] / found["fixed_ms"]
    show(
        "One image by an exported committee, 200 classes, one thread",
        ("open classes", "fixed classes", "ratio", "latem"),
        [
            (
                f"{found['open_ms']:.1f} ms", f"{found['fixed_ms']:.1f} ms",
                f"{found['ratio']:.1f}", f"{found['latem_ms']:.1f} ms",
            )
        ],
    )  # fmt: skip
    keep("export", {name: round(value, 3) for name, value in found.items()})


if __name__ == "__main__":
    main()
