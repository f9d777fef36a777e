"""Where displays draw, and in which colours."""

from cycler import cycler
from matplotlib import rc_context
from matplotlib.figure import Figure

from latem.inspection.axes import axes_for, legend_above, plot_label


def test_labels_are_shown_as_they_are_written():
    assert plot_label("x" * 50, 10) == "xxxxx…xxxxx"
    assert plot_label("a\nb $") == r"a b \$"
    with rc_context({"text.parse_math": False}):
        assert plot_label("$5") == "$5"


def test_colours_follow_the_style():
    given = Figure().subplots()
    with rc_context({"axes.prop_cycle": cycler(color=["red", "blue"]), "xtick.color": "green"}):
        ax, figure, colours = axes_for(given)
    assert (ax, figure) == (given, given.figure)
    assert colours.series == ["red", "blue"] * 3
    assert colours.muted == "green"
    with rc_context({"axes.prop_cycle": cycler(linestyle=["-", ":"]), "text.color": "pink"}):
        assert set(axes_for(given)[2].series) == {"pink"}


def test_legends_hide_nothing():
    ax = Figure().subplots()
    ax.plot([0, 1], [0, 1], label="a line")
    legend_above(ax)
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a line"]
