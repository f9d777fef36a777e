"""Plots as SVG text to be put on a page.

Drawn with matplotlib's object interface, so that no window or global figure is involved. Text
stays text: the browser draws it, in any script. Colours become CSS variables, so that a plot
follows the page into a dark scheme. The same data give the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any
from unicodedata import east_asian_width

import numpy as np
from cycler import cycler
from markupsafe import Markup
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from latem.report.comparison import Cell
from latem.report.names import number

# Stand-ins for the colours of the page's style sheet; `_svg` puts the variables in their place.
_INK, _MUTED, _GRID, _PAPER = "#010101", "#010102", "#010103", "#010104"
_ABOVE, _BELOW, _BAND, _BAND_2 = "#010105", "#010106", "#010107", "#010108"
_SERIES = tuple(f"#01011{i}" for i in range(6))
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _GRID: "--grid",
    _PAPER: "--paper",
    _ABOVE: "--above",
    _BELOW: "--below",
    _BAND: "--band-1",
    _BAND_2: "--band-2",
    **{colour: f"--series-{i}" for i, colour in enumerate(_SERIES)},
}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", ":")
_VERDICTS = {
    "above": ("^", _ABOVE),
    "same": ("o", _INK),
    "below": ("v", _BELOW),
    "plain": ("o", _INK),
}
_WIDTH = 3.9  # inches; about the width of a phone's screen
_LABEL, _TITLE = 30, 44  # letters there is room for
_LARGEST = 1.25  # how far a plot may be enlarged

_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same layout everywhere
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "axes.prop_cycle": cycler(color=_SERIES),
    "legend.frameon": False,
    "savefig.transparent": True,
}


def comparison_plot(
    lines: Sequence[tuple[str, Cell]], limits: tuple[float, float], unit: str, name: str, title: str
) -> Markup:
    """Our numbers and the paper's on common lines.

    Parameters
    ----------
    lines : sequence of (str, Cell)
        Compared cells, from top to bottom.
    limits : pair of float
        Range of the axis, the same for all plots of a table.
    unit : str
        Title of the axis.
    name : str
        Different from the names of all other plots on the page.
    title : str
        Read out in place of the plot.

    Returns
    -------
    Markup
    """
    labels = [_in_two_lines(text) for text, _ in lines]
    height = 0.36 if any("\n" in label for label in labels) else 0.23
    with _figure(_WIDTH, 0.62 + height * len(lines)) as figure:
        axes = figure.add_subplot()
        for i, (_, cell) in enumerate(lines):
            assert cell.ours is not None
            assert cell.paper is not None
            marker, colour = _VERDICTS[cell.verdict]
            axes.plot([cell.paper, cell.ours], [i, i], color=colour, linewidth=1.6)
            if cell.error is not None:
                axes.errorbar(
                    cell.ours, i, xerr=cell.error, fmt="none", color=colour, elinewidth=1, capsize=3
                )
            axes.plot(cell.paper, i, "o", mfc=_PAPER, mec=_MUTED, mew=1.3, markersize=6.5)
            axes.plot(cell.ours, i, marker, mfc=colour, mec=_PAPER, mew=0.6, markersize=7)
        axes.set_yticks(range(len(lines)), labels)
        axes.set_ylim(len(lines) - 0.4, -0.6)
        axes.set_xlim(*limits)
        axes.set_xlabel(unit)
        axes.tick_params("y", length=0)
        axes.spines["left"].set_visible(False)
        return _svg(figure, name, title)


def curve_plot(curve: Mapping[str, Any], name: str) -> Markup:
    """Lines with standard errors: one per series, told apart by marker as well as colour.

    Parameters
    ----------
    curve : mapping
        One of a summary's `curves`.
    name : str
        Different from the names of all other plots on the page.

    Returns
    -------
    Markup
    """
    x = np.array(curve["x"], dtype=float)
    names = [_short(series["name"], _LABEL) for series in curve["series"]]
    n_columns = min(max(_TITLE // (max(map(len, names)) + 6), 1), 4)
    n_rows = -(-len(names) // n_columns)
    with _figure(_WIDTH, 2.9 + 0.2 * n_rows) as figure:
        axes = figure.add_subplot()
        for i, series in enumerate(curve["series"]):
            mean = _numbers(series["mean"])
            error = np.nan_to_num(_numbers(series.get("error") or [None] * len(mean)))
            axes.errorbar(
                x,
                mean,
                error,
                label=names[i],
                color=_SERIES[i % len(_SERIES)],
                marker=_MARKERS[i % len(_MARKERS)],
                linestyle=_DASHES[i // len(_SERIES) % len(_DASHES)],
                linewidth=1.6,
                elinewidth=0.9,
                capsize=2.5,
                markersize=5,
            )
        axes.set_xticks(x, [f"{value:g}" for value in x])
        axes.grid(visible=False, axis="x")
        axes.set_xlabel(_short(curve.get("x_title", ""), _TITLE))
        axes.set_ylabel(_short(curve.get("y_title", ""), _TITLE))
        figure.legend(
            loc="outside upper left", ncols=n_columns, handlelength=2.2, columnspacing=1.4
        )
        return _svg(figure, name, str(curve["title"]))


def map_count_plot(n_maps: Sequence[int], name: str, title: str) -> Markup:
    """Number of maps after each epoch, as steps.

    Parameters
    ----------
    n_maps : sequence of int
        One number per epoch.
    name, title : str
        As in `comparison_plot`.

    Returns
    -------
    Markup
    """
    with _figure(_WIDTH, 2.2) as figure:
        axes = figure.add_subplot()
        axes.step(np.arange(1, len(n_maps) + 1), n_maps, where="post", color=_ABOVE, linewidth=1.8)
        axes.set_ylim(0, 1.08 * max(n_maps))
        axes.set_xlabel("epoch")
        axes.set_ylabel("number of maps")
        _whole_numbers(axes, "xy")
        return _svg(figure, name, title)


def share_plot(epochs: Sequence[int], shares: np.ndarray, name: str, title: str) -> Markup:
    """Shares of the same maps over some epochs, stacked.

    Parameters
    ----------
    epochs : sequence of int
    shares : ndarray of shape (n_epochs, n_maps)
        Between 0 and 1.
    name, title : str
        As in `comparison_plot`.

    Returns
    -------
    Markup
    """
    tops = 100 * np.cumsum(shares, axis=1)  # (n_epochs, n_maps)
    height = max(tops.max(), 1e-9)
    with _figure(_WIDTH, 2.2) as figure:
        axes = figure.add_subplot()
        below = np.zeros(len(tops))
        for k, top in enumerate(tops.T):
            colour = (_BAND, _BAND_2)[k % 2]
            axes.fill_between(epochs, below, top, color=colour, edgecolor=_PAPER, linewidth=0.6)
            if top[-1] - below[-1] > 0.055 * height:
                axes.annotate(
                    f"map {k}",
                    (1, (top[-1] + below[-1]) / 2),
                    (4, 0),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                )
            below = top
        axes.set_xlim(epochs[0], epochs[-1])
        axes.set_ylim(0, height)
        axes.grid(visible=False)
        axes.set_xlabel("epoch")
        axes.set_ylabel("share of images (%)")
        _whole_numbers(axes, "x")
        return _svg(figure, name, title)


def display_plot(display: Any, name: str, title: str) -> Markup:
    """One of the displays of `latem.inspection`, in the colours of the page.

    Parameters
    ----------
    display : object with `plot(ax=...)`
    name, title : str
        As in `comparison_plot`.

    Returns
    -------
    Markup
    """
    with _figure(_WIDTH, 3.5) as figure:
        display.plot(ax=figure.add_subplot())
        return _svg(figure, name, title)


def axis_limits(cells: Sequence[Cell]) -> tuple[float, float]:
    """A range that holds all numbers of some compared cells, with errors."""
    values = [cell.paper or 0.0 for cell in cells]
    values += [(cell.ours or 0.0) - (cell.error or 0.0) for cell in cells]
    values += [(cell.ours or 0.0) + (cell.error or 0.0) for cell in cells]
    room = 0.05 * (max(values) - min(values)) or 1.0
    return min(values) - room, max(values) + room


def _whole_numbers(axes: Axes, which: str) -> None:
    for axis in which:
        getattr(axes, f"{axis}axis").set_major_locator(
            MaxNLocator(6, steps=[1, 2, 5, 10], integer=True)
        )


def _numbers(values: Sequence[Any]) -> np.ndarray:
    return np.array([np.nan if number(value) is None else value for value in values], dtype=float)


def _clean(text: Any) -> str:
    """Text on one line, without what SVG cannot hold."""
    text = str(text).encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in text)


def _short(text: Any, length: int) -> str:
    """Text with its middle left out where there is no room for it."""
    text = _clean(text)
    if any(east_asian_width(c) in "WF" for c in text):
        length //= 2
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[: length - 1 - half]}…{text[-half:]}"


def _in_two_lines(text: str) -> str:
    """A label that is too long for one line, broken after its first comma."""
    head, comma, tail = text.partition(", ")
    if len(text) <= _LABEL or not tail:
        return _short(text, _LABEL)
    return f"{_short(head, _LABEL)}{comma.rstrip()}\n{_short(tail, _LABEL)}"


@contextmanager
def _figure(width: float, height: float) -> Iterator[Figure]:
    """A figure in the report's style, whatever the user's settings are."""
    with warnings.catch_warnings(), style.context(_STYLE, after_reset=True):
        # measuring a text warns of letters that matplotlib's font lacks; the browser draws them
        warnings.filterwarnings("ignore", message=r"Glyph \d+|Matplotlib currently does not")
        yield Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Figure, name: str, title: str) -> Markup:
    """The figure as an `<svg>` element that belongs in a page."""
    content = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with style.context({"svg.hashsalt": name}):
        figure.savefig(content, format="svg", metadata=nothing)
    text = content.getvalue().decode("utf-8")
    text = text[text.index("<svg") :]
    head, body = text.split(">", 1)
    size = re.search(r'viewBox="([^"]+)"', head)
    assert size is not None
    body = re.sub(r"<!--.*?-->|<style.*?</style>", "", body, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))

    def for_page(tag: re.Match[str]) -> str:
        text = tag[0].replace("xlink:href", "href")
        text = re.sub(r' id="([^"]+)"', lambda m: m[0] if m[1] in used else "", text)
        text = re.sub(r"'DejaVu Sans'(?:, *[\w'-]+)*", "system-ui, sans-serif", text)
        text = re.sub("|".join(_VARIABLES), lambda m: f"var({_VARIABLES[m[0]]})", text)
        return re.sub(r"\s+", " ", text)

    body = re.sub(r"<[^<>]*>", for_page, body)
    body = re.sub(r">\s+<", "><", body)
    width = float(size[1].split()[2])
    attributes = f'class="plot" role="img" aria-label="{escape(_clean(title))}"'
    largest = f'style="max-width: {_LARGEST * width:.0f}pt"'
    return Markup(f'<svg {attributes} viewBox="{size[1]}" {largest}>{body.strip()}')
