"""Where displays draw: given axes or new ones, and the colours of the style in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latem.core.slim import needed


@dataclass(frozen=True)
class Colours:
    """Colours that follow the style in use.

    Attributes
    ----------
    series : list of str
        At least three, for lines and marks.
    muted : str
        For lines to compare with.
    """

    series: list[Any]
    muted: Any


def axes_for(ax: Any = None) -> tuple[Any, Any, Colours]:
    """Axes to draw on, their figure, and the colours to draw with.

    Parameters
    ----------
    ax : matplotlib axes or None
        None makes a new figure, as pyplot does, so that notebooks show it.
    """
    mpl = needed("matplotlib", "Plots")
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    cycle = mpl.rcParams["axes.prop_cycle"].by_key().get("color") or [mpl.rcParams["text.color"]]
    return (
        ax,
        ax.figure,
        Colours([cycle[i % len(cycle)] for i in range(6)], mpl.rcParams["xtick.color"]),
    )


def legend_above(ax: Any, lines: Any = None) -> None:
    """A legend above the axes, where it hides nothing."""
    shown = ax.get_legend_handles_labels()[0] if lines is None else lines
    ax.legend(
        handles=shown,
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        borderaxespad=0,
        frameon=False,
    )


def plot_label(name: Any, length: int = 44) -> str:
    """A name that matplotlib shows as it is written, shortened so that the plot has room."""
    from matplotlib import rcParams

    text = "".join(letter if letter.isprintable() else " " for letter in str(name))
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) > length:
        text = f"{text[: length // 2]}…{text[-length // 2 :]}"
    return text.replace("$", r"\$") if rcParams["text.parse_math"] else text
