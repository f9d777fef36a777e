"""Which methods and properties the page of a class shows: those of latem, and each in one place."""

import inspect
from typing import Any

import latem

# What parts of the library say to each other; of interest to whoever adds a model (architecture.md)
WITHIN = frozenset(
    [
        "block_scorer",
        "blocks_of",
        "by_direction",
        "check_classes",
        "check_images",
        "check_training_images",
        "class_codes",
        "current_names",
        "each_block",
        "equations",
        "forget_calibration",
        "forget_measured",
        "learn",
        "map_scorer",
        "note_encoder",
        "pack",
        "pack_acceptance",
        "pack_knowledge",
        "pack_training",
        "prepare",
        "record_training",
        "score_terms",
        "settled",
        "strangeness_of",
        "training_rows",
        "tried_values",
        "unfitted_member",
        "unfitted_model",
        "unpack",
        "unpack_acceptance",
        "unpack_knowledge",
        "unpack_training",
        "usual_strangeness",
        "words",
    ]
)


def shown(name: str) -> list[str]:
    """Public methods and properties of a public class.

    Models show what `ZeroShotClassifier` has not, or what they do in a way of their own.
    """
    cls = getattr(latem, name)
    common = latem.ZeroShotClassifier
    stop = common.__mro__ if issubclass(cls, common) and cls is not common else (object,)
    found: dict[str, Any] = {}
    for owner in cls.__mro__:
        if owner in stop:
            break
        if owner.__module__.startswith("latem"):
            for key, value in vars(owner).items():
                found.setdefault(key, value)
    hidden = WITHIN if issubclass(cls, common) and cls is not latem.TableClassifier else ()
    return sorted(
        key for key, value in found.items() if _is_shown(key, value) and key not in hidden
    )


def _is_shown(key: str, value: Any) -> bool:
    if key.startswith("_"):
        return False
    value = getattr(value, "__func__", value)
    documented = inspect.isfunction(value) or isinstance(value, property)
    return documented and bool(inspect.getdoc(value))


def is_model(name: str) -> bool:
    """Whether a public class is one of the models, or a search."""
    common = latem.ZeroShotClassifier
    cls = getattr(latem, name)
    return issubclass(cls, common) and cls is not common


def kind(name: str, member: str) -> str:
    """The directive of autodoc for a method or property."""
    value = inspect.getattr_static(getattr(latem, name), member)
    return "property" if isinstance(value, property) else "method"
