"""How messages name things."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

_SHOWN = 5
_MISSING, _KNOWN = 5, 5000  # names that are compared for a hint


def shortened(text: str, n: int = 60) -> str:
    """A text, or the beginning of a long one.

    >>> shortened("zebra"), shortened("zebra", 3)
    ('zebra', 'zeb…')
    """
    return text if len(text) <= n else f"{text[:n]}…"


def near_name(given: str, known: Iterable[str]) -> str:
    """A question that offers the known name most like the given one; nothing if none is near it.

    >>> near_name("eszsl", ["LatEm", "ESZSL"]), near_name("zebra", ["LatEm"])
    (" Did you mean 'ESZSL'?", '')
    """
    near = first_near([given], known)
    return "" if near is None else f" Did you mean {near[1]!r}?"


def first_near(missing: Iterable[Any], known: Iterable[Any]) -> tuple[str, str] | None:
    """The first of some names that are not known to which a known one is near, and that one.

    Of very many only the first are compared: a message must not take seconds.

    >>> first_near(["unicorn", "rusty_blackbird"], ["Okapi", "Rusty Blackbird"])
    ('rusty_blackbird', 'Rusty Blackbird')
    """
    by_letters = {str(name).lower(): str(name) for name in islice(known, _KNOWN)}
    for name in islice(missing, _MISSING):
        near = difflib.get_close_matches(str(name).lower(), by_letters, 1)
        if near:
            return str(name), by_letters[near[0]]
    return None


def hint_of(missing: Sequence[Any], known: Iterable[Any]) -> str:
    """In brackets, which known name may be meant; nothing if none is near.

    >>> hint_of(["henn"], ["hen"]), hint_of(["henn", "ibis"], ["hen"]), hint_of(["henn"], ["ox"])
    (" (did you mean 'hen'?)", " (for 'henn', did you mean 'hen'?)", '')
    """
    near = first_near(missing, known)
    if near is None:
        return ""
    return f" ({f'for {near[0]!r}, ' if len(missing) > 1 else ''}did you mean {near[1]!r}?)"


def first_few(values: Sequence[Any]) -> str:
    """The first few of a list, as text.

    >>> first_few([1, 2, 3, 4, 5, 6, 7])
    '1, 2, 3, 4, 5 and 2 more'
    >>> import numpy as np
    >>> first_few([np.str_("ant"), None])
    "'ant', None"
    """
    plain = (str(value) if isinstance(value, str) else value for value in values[:_SHOWN])
    shown = ", ".join(map(repr, plain))  # NumPy's texts would tell their type
    return shown + (f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else "")
