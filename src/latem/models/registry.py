"""The models of the library, one row each: the only list of them.

`latem` itself, loading of files, `latem train --model`, the usual grids, explanations and the
shared tests read it. Nothing heavy is imported here: a model's module is, when the model is first
asked for. `docs/adding-a-model.md` shows how to add one.
"""

from latem.models.model_rows import ModelRow

_EPOCHS = (5, 10, 20, 50, 100, 150)
_STEPS = (0.001, 0.01, 0.1, 1.0)
_POWERS = tuple(10.0**power for power in range(-3, 4))

MODELS = (
    ModelRow(
        "LatEm",
        "latem.models.latem",
        maps="maps_",
        grid={"n_maps": (2, 4, 6, 8, 10), "learning_rate": (0.001, 0.01, 0.1)},
    ),
    ModelRow(
        "SJE",
        "latem.models.bilinear",
        maps="maps_",
        grid={"learning_rate": _STEPS, "n_epochs": _EPOCHS},
    ),
    ModelRow(
        "ALE",
        "latem.models.bilinear",
        maps="maps_",
        grid={"weighting": ("rank", "draws"), "learning_rate": _STEPS, "n_epochs": _EPOCHS},
    ),
    ModelRow(
        "DeViSE",
        "latem.models.bilinear",
        maps="maps_",
        grid={
            "violators": ("first", "all"),
            "margin": (0.1, 0.3, 1.0),
            "learning_rate": (0.01, 0.1, 1.0),
            "n_epochs": (5, 10, 20, 50, 100),
        },
    ),
    ModelRow(
        "WSABIE",
        "latem.models.wsabie",
        maps="map_",
        grid={"rank": (50, 100), "learning_rate": (0.001, 0.01, 0.1), "n_epochs": (20, 50, 100)},
    ),
    ModelRow("ESZSL", "latem.models.eszsl", maps="map_", grid={"gamma": _POWERS, "lam": _POWERS}),
    ModelRow("ESZSLCV", "latem.models.eszsl", maps="map_", on_command_line=False),
    ModelRow("DAP", "latem.models.attributes", grid={"C": (0.001, 0.01, 0.1)}),
    ModelRow("IAP", "latem.models.attributes", grid={"C": (0.001, 0.01, 0.1)}),
    ModelRow("CMT", "latem.models.cmt", grid={"alpha": (1e-3, 1e-2, 1e-1)}),
    ModelRow(
        "SemanticOutputCodes",
        "latem.models.regression",
        grid={"alpha": _POWERS, "neighbour": ("euclidean", "cosine")},
    ),
    ModelRow(
        "ConSE",
        "latem.models.conse",
        grid={"C": (1e-4, 1e-3, 1e-2, 1e-1), "n_top": (5, 10, 20, 50)},
    ),
    ModelRow(
        "CCA", "latem.models.cca", grid={"reg_x": (0.1, 1.0, 10.0), "reg_y": (0.1, 1.0, 10.0)}
    ),
    ModelRow(
        "SAE", "latem.models.sae", grid={"lam": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)}
    ),
    ModelRow(
        "EXEM",
        "latem.models.exem",
        grid={
            "gamma": tuple(2.0**power for power in range(-4, 5)),
            "alpha": (0.001, 0.01, 0.1, 1.0),
        },
    ),
    ModelRow(
        "SynC",
        "latem.models.sync",
        grid={"tau": (0.25, 0.5, 1.0, 2.0), "lam": (2.0**-11, 2.0**-10, 2.0**-9)},
    ),
    ModelRow(
        "GFZSL",
        "latem.models.gfzsl",
        grid={"alpha": (0.001, 0.01, 0.1, 1.0, 10.0), "variance_alpha": (1.0, 100.0, 1e4)},
    ),
    ModelRow("Committee", "latem.models.committee"),
    ModelRow("LateFusion", "latem.models.fusion", on_command_line=False),
)
