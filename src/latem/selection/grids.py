"""Values that are tried for each model unless others are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_EPOCHS = (5, 10, 20, 50, 100, 150)
_POWERS = tuple(10.0**power for power in range(-3, 4))

GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "LatEm": {"n_maps": (2, 4, 6, 8, 10), "learning_rate": (0.001, 0.01, 0.1)},
    "SJE": {"learning_rate": (0.001, 0.01, 0.1, 1.0), "n_epochs": _EPOCHS},
    "ALE": {
        "weighting": ("rank", "draws"),
        "learning_rate": (0.001, 0.01, 0.1, 1.0),
        "n_epochs": _EPOCHS,
    },
    "DeViSE": {
        "violators": ("first", "all"),
        "learning_rate": (0.001, 0.01, 0.1, 1.0),
        "n_epochs": _EPOCHS,
    },
    "WSABIE": {"rank": (50, 100), "learning_rate": (0.001, 0.01, 0.1), "n_epochs": (20, 50, 100)},
    "ESZSL": {"gamma": _POWERS, "lam": _POWERS},
    "DAP": {"C": (0.001, 0.01, 0.1)},
    "IAP": {"C": (0.001, 0.01, 0.1)},
    "CMT": {"alpha": (1e-3, 1e-2, 1e-1)},
    "SemanticOutputCodes": {"alpha": _POWERS, "neighbour": ("euclidean", "cosine")},
    "ConSE": {"C": (1e-4, 1e-3, 1e-2, 1e-1), "n_top": (5, 10, 20, 50)},
    "CCA": {"reg_x": (0.1, 1.0, 10.0), "reg_y": (0.1, 1.0, 10.0)},
}
