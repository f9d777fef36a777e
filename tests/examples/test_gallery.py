"""The examples of the gallery run as they stand, draw something, and show what they say."""

import re
import runpy
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from latem.models import model_rows

GALLERY = Path(__file__).resolve().parents[2] / "examples" / "gallery"
FACTS = {}  # by name of the example


@pytest.fixture(autouse=True)
def _without_a_screen_or_trace(monkeypatch):
    monkeypatch.setattr(
        model_rows, "_ROWS", dict(model_rows._ROWS)
    )  # one example registers a model
    backend = mpl.get_backend()
    plt.switch_backend("Agg")
    plt.close("all")
    yield
    plt.close("all")
    plt.switch_backend(backend)


def fact(name):
    """Registers what must be true of the names that an example leaves."""

    def keep(check):
        FACTS[name] = check
        return check

    return keep


def run(name):
    """What an example leaves in its namespace; every figure it made has something drawn in it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        left = runpy.run_path(str(GALLERY / f"plot_{name}.py"), run_name="__main__")
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        assert figure.axes
        assert all(axes.has_data() and axes.get_xlabel() + axes.get_ylabel() + axes.get_title()
                   for axes in figure.axes)  # fmt: skip
        figure.canvas.draw()
    return left


@fact("01_first_model")
def first_model(left):
    assert left["accuracy"] > 10 * left["chance"]
    assert list(left["by_class"].values()) == sorted(left["by_class"].values(), reverse=True)
    pairs = left["confused"].confusions[["true", "named"]].to_numpy().tolist()
    assert ["small airplane", "airplane arrival"] in pairs  # named in the text
    assert ["handbag", "key"] in pairs


@fact("02_several_maps")
def several_maps(left):
    for n_poses, shares in left["accuracy"].items():
        for n_maps, share in zip(left["maps"], shares, strict=True):
            if n_maps >= n_poses:
                assert share > 0.98
            else:
                assert share < (n_poses - 1) / n_poses  # what can be proved
    assert (left["shares"].max(axis=1) > 0.95).all()  # a map for each pose
    assert sorted(left["shares"].argmax(axis=1)) == [0, 1, 2]


@fact("03_pruning")
def pruning(left):
    assert 3 <= len(left["pruned"].maps_) <= 5
    assert left["n_maps"][0] == 16
    assert min(left["scores"].values()) > 0.98


@fact("04_fusion")
def fusion(left):
    scores = left["scores"]
    alone = max(scores[name] for name in ("att", "glo", "text"))
    assert min(scores["chosen weights"], scores["equal weights"]) > alone
    assert sum(left["weights"].values()) == pytest.approx(1)


@fact("05_generalized")
def generalized(left):
    plain, stacked = left["found"].plain, left["found"].stacked
    assert plain.unseen < 0.03
    assert abs(stacked.seen - stacked.unseen) < 0.05
    assert stacked.harmonic > 10 * plain.harmonic
    assert left["display"].stacked == stacked


@fact("06_calibration")
def calibration(left):
    assert left["reliability"].after.error < left["reliability"].before.error / 3
    risk = left["risk"]
    assert risk.risk[left["third"]] < 0.7 * risk.risk[-1]
    own, others = left["verdicts"]["of the candidates"], left["verdicts"]["of none of them"]
    assert own["named"] > 3 * others["named"]
    assert others["none of these"] > own["none of these"]


@fact("07_inventing_a_class")
def inventing_a_class(left):
    assert left["n_squids"]["horse"] == 0
    assert left["n_squids"]["sea horse"] >= 5
    vectors = left["keywords"].vectors[left["keywords"].positions(left["y"])]
    column = left["keywords"].column_names().index("kind:animal-marine")
    assert set(left["y"][vectors[:, column] > 0]) == {"squid"}  # the only marine animal there


@fact("08_explanations")
def explanations(left):
    why, why_not = left["why"], left["why_not"]
    assert why.named == "squid"
    assert why_not.runner_up == "scorpion"
    for one in (why, why_not):
        assert one.contributions.sum() == pytest.approx(one.lead)
        assert one.contributions.idxmax() == "kind:animal-marine"
    share = left["is_animal"][left["best"]].mean()
    assert share > 5 * left["is_animal"].mean()


@fact("09_album")
def album(left):
    assert left["after"] > left["before"] + 0.02
    gained = left["gained"]
    assert gained["together"] < gained["alone"] + 0.02  # as the text says of these classes
    assert gained["with a name by hand"] > gained["alone"] + 0.05


@fact("10_own_baseline")
def own_baseline(left):
    assert left["same"]
    assert min(left["scores"].values()) > 10 / 60


@fact("11_other_encoders")
def other_encoders(left):
    means = [np.mean(left["found"][n]) for n in left["sizes"]]
    assert means == sorted(means)
    assert means[-1] > 3 * means[0]


@fact("12_sounds")
def sounds(left):
    assert left["scores"]["ESZSL"] > left["scores"]["LatEm, 4 maps"] > 10 / left["n_unheard"]
    right = left["right"]
    assert right["pitch"] > 0.99
    assert min(right, key=right.get) == "movement"
    assert not set(left["labels"][left["heard"]]) & set(left["unseen"])


QUICK = ("03_pruning", "07_inventing_a_class", "08_explanations", "12_sounds")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FACTS],
)
def test_it_runs_and_shows_what_it_says(name):
    FACTS[name](run(name))


def test_every_example_is_run():
    files = {path.stem.removeprefix("plot_") for path in GALLERY.glob("*.py")}
    assert files == set(FACTS)
    assert (GALLERY / "README.rst").read_text(encoding="utf-8").startswith("Examples\n====")


@pytest.mark.parametrize("name", FACTS)
def test_it_has_the_form_of_a_gallery(name):
    text = (GALLERY / f"plot_{name}.py").read_text(encoding="utf-8")
    title, line = re.match(r'"""\n(.+)\n(=+)\n\n', text).groups()
    assert len(title) == len(line)
    assert text.count("# %%") >= 1
    assert "plt.show()" in text
