"""How good a model was when it was trained: a small record that travels with it.

`latem.train` and `latem train` measure a model anyway; the record keeps what they found, so that
the file can tell. A further fit drops it, because it belongs to another model then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from latem.core.storage import FileFormatError

_TEXTS = ("dataset", "split", "embedding")
_SHARES = ("held_out_score", "unseen_score")


@dataclass(frozen=True)
class Measured:
    """What training chose and measured.

    Attributes
    ----------
    dataset, split, embedding : str or None
        What the model was trained on; names only.
    chosen : dict
        Parameters that were chosen on held-out classes.
    held_out_score : float or None
        Mean per-class accuracy on those classes; None if nothing was chosen.
    unseen_score : float or None
        Mean per-class accuracy on the split's test classes; None if there were none.
    n_unseen : int
        Number of those classes.
    """

    dataset: str | None = None
    split: str | None = None
    embedding: str | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    held_out_score: float | None = None
    unseen_score: float | None = None
    n_unseen: int = 0

    def __post_init__(self) -> None:
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise FileFormatError(f"a record of training with {name} {value!r}")
        for name in _SHARES:
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and 0 <= value <= 1):
                raise FileFormatError(f"a record of training with {name} {value!r}")
        whole = isinstance(self.n_unseen, int) and not isinstance(self.n_unseen, bool)
        if not whole or self.n_unseen < 0 or not isinstance(self.chosen, Mapping):
            raise FileFormatError("a record of training that cannot be")

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Measured:
        """From `to_dict`; entries of later versions are left out."""
        if not isinstance(data, Mapping):
            raise FileFormatError("a record of training that cannot be")
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})
