"""Small files as the MATLAB benchmarks have them."""

import numpy as np
from scipy.io import savemat

CLASSES = ["ant", "bee", "cat", "dog", "eel"]


def gbu_parts(n=20, d=3):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 5 + 1
    att = rng.random((4, 5))
    seen = np.flatnonzero(labels <= 3) + 1
    return {
        "features": {
            "features": rng.random((d, n)),
            "labels": labels[:, None].astype(np.uint8),
            "image_files": np.array(
                [[f"/BS/data/{CLASSES[c - 1]}/{i}.jpg"] for i, c in enumerate(labels)], object
            ),
        },
        "splits": {
            "allclasses_names": np.array([[name] for name in CLASSES], object),
            "att": att / np.linalg.norm(att, axis=0),
            "original_att": att,
            "trainval_loc": seen[:9, None].astype(np.uint16),
            "test_seen_loc": seen[9:, None].astype(np.uint16),
            "test_unseen_loc": (np.flatnonzero(labels > 3) + 1)[:, None].astype(np.uint16),
        },
    }


def write_gbu(folder, parts=None):
    parts = parts or gbu_parts()
    folder.mkdir(exist_ok=True)
    savemat(folder / "res101.mat", parts["features"])
    savemat(folder / "att_splits.mat", parts["splits"])
    return folder / "res101.mat", folder / "att_splits.mat"
