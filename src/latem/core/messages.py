"""How messages name things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_SHOWN = 5


def shortened(text: str, n: int = 60) -> str:
    """A text, or the beginning of a long one.

    >>> shortened("zebra"), shortened("zebra", 3)
    ('zebra', 'zeb…')
    """
    return text if len(text) <= n else f"{text[:n]}…"


def first_few(values: Sequence[Any]) -> str:
    """The first few of a list, as text.

    >>> first_few([1, 2, 3, 4, 5, 6, 7])
    '1, 2, 3, 4, 5 and 2 more'
    """
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return shown + (f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else "")
