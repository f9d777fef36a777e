"""Name pictures or features with a file of `latem export`, without latem.

    python examples/serve_onnx.py birds.onnx photo.jpg          # written with --pictures
    python examples/serve_onnx.py birds.onnx features.npy       # (n, n_features)

needs onnxruntime, NumPy and, for pictures, Pillow.
"""

import json
import os
import sys

import numpy as np

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

onnxruntime.set_default_logger_severity(3)  # inputs with defaults are no reason to warn
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
about = json.loads(session.get_modelmeta().custom_metadata_map["latem"])
for path in sys.argv[2:]:
    if path.endswith(".npy"):
        given = {"features": np.load(path).astype(np.float32)}
    else:
        from PIL import Image, ImageOps

        how, photo = about["encoder"], ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        size, method = (how["size"], how["size"]), Image.Resampling[how["interpolation"].upper()]
        square = ImageOps.fit(photo, size, method, bleed=(1 - how["crop"]) / 2)
        given = {"pictures": np.asarray(square)[None]}
    for place, sure in zip(*session.run(["best", "probabilities"], given), strict=True):
        print(f"{path}\t{about['classes'][place]}\t{sure[place]:.3f}")
