"""Name pictures or features with a file of `latem export`, without latem.

    python examples/serve_onnx.py birds.onnx photo.jpg          # written with --pictures
    python examples/serve_onnx.py birds.onnx features.npy       # (n, n_features)

needs onnxruntime, NumPy and, for pictures, Pillow. A probability says which class it would be if it
had to be one of them; whether it is one, the output `verdict` says.
"""

import json
import os
import sys

import numpy as np

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
from onnxruntime import InferenceSession, set_default_logger_severity


def read(path, how):
    """Features of a file, or the square in the middle of an upright picture."""
    if path.endswith(".npy"):
        return {"features": np.load(path).astype(np.float32)}
    from PIL import Image, ImageOps

    photo = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    size, method = (how["size"],) * 2, Image.Resampling[how["interpolation"].upper()]
    return {"pictures": np.array(ImageOps.fit(photo, size, method, (1 - how["crop"]) / 2))[None]}


if __name__ == "__main__":
    set_default_logger_severity(3)  # inputs with defaults are no reason to warn
    session = InferenceSession(*sys.argv[1:2] or sys.exit(__doc__), None, ["CPUExecutionProvider"])
    about = json.loads(session.get_modelmeta().custom_metadata_map["latem"])
    for path in sys.argv[2:]:
        for _, sure, best, *_ in zip(*session.run(None, read(path, about["encoder"])), strict=True):
            print(f"{path}\t{about['classes'][best]}\t{sure[best]:.3f}")
