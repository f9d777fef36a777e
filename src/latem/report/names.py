"""How a report writes names and numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

_PREFIX = re.compile(r"\d+\.(?=\D)|n\d{8}[-_]")  # 001.Sooty_Albatross, n02085620-Chihuahua
_PLUS = re.compile(r"(?<=[a-z])\+(?=[a-z])")  # grizzly+bear
_PICTOGRAPH = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_CHANGED = f"{_PICTOGRAPH}[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*"
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"  # flags
    "|[0-9#*]\ufe0f?\u20e3"  # keycaps
    f"|{_CHANGED}(?:\u200d{_CHANGED})*"
)


def label(name: Any) -> str:
    """A class's name as people would write it.

    >>> label("001.Black_footed_Albatross"), label("n02085620-Chihuahua"), label("grizzly+bear")
    ('Black footed Albatross', 'Chihuahua', 'grizzly bear')
    """
    name = str(name)
    short = _PLUS.sub(" ", _PREFIX.sub("", name, count=1) if _PREFIX.match(name) else name)
    return " ".join(short.replace("_", " ").split()) or name


def labels(names: Iterable[Any]) -> list[str]:
    """Labels of several classes; a class keeps its own name where two labels would be the same.

    >>> labels(["1.Crow", "2.Crow", "3.Jay"])
    ['1.Crow', '2.Crow', 'Jay']
    """
    names = [str(name) for name in names]
    short = [label(name) for name in names]
    counts = Counter(short)
    return [text if counts[text] == 1 else name for name, text in zip(names, short, strict=True)]


def pictograph(*names: Any) -> str:
    """The first emoji that is a whole name or its first word, or nothing.

    >>> pictograph("foggy", "🌁 openmoji"), pictograph("👩‍🚀"), pictograph("okapi")
    ('🌁', '👩‍🚀', '')
    """
    for name in names:
        first = str(name).split(maxsplit=1)[:1]
        if first and _EMOJI.fullmatch(first[0]):
            return first[0]
    return ""


def number(value: Any) -> float | None:
    """A finite number, or None for what is missing."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def fixed(value: float | None, digits: int) -> str:
    """A number with so many decimals and a real minus sign; a dash for None.

    >>> fixed(45.46, 1), fixed(-0.04, 1), fixed(-2, 0), fixed(None, 1)
    ('45.5', '0.0', '−2', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def score_text(value: float) -> str:
    """A score with two decimals, or with two digits if it is small.

    >>> score_text(3.14159), score_text(-0.00421), score_text(0.0), score_text(1234.5)
    ('3.14', '−0.0042', '0.00', '1234.50')
    """
    small = 0 < abs(value) < 0.1
    return fixed(value, 1 - math.floor(math.log10(abs(value))) if small else 2)


def signed(value: float | None, digits: int) -> str:
    """Like `fixed`, with a sign.

    >>> signed(0.3, 1), signed(-1.5, 1), signed(0.0, 1)
    ('+0.3', '−1.5', '0.0')
    """
    text = fixed(value, digits)
    return f"+{text}" if value is not None and float(f"{value:.{digits}f}") > 0 else text


def percent(share: float | None) -> str:
    r"""A share in percent.

    >>> percent(0.4312)
    '43.1\xa0%'
    """
    return "–" if share is None else f"{fixed(100 * share, 1)}\N{NO-BREAK SPACE}%"
