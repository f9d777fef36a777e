"""Families of traits: what belongs together, and that its sum explains the same."""

import json
import math
import time

import numpy as np
import pandas as pd
import pytest
from helpers import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from latem import ESZSL, ClassEmbeddings, explain_predictions, make_latent_world, read_folder
from latem.inspection.families import family_of_columns, gather

COLUMNS = ["wing::red", "wing::blue", "wing::grey", "bill::hooked", "bill::cone", "mass", "a", "b"]


def table_with(columns, seed=0):
    world = make_latent_world(n_seen=20, n_images=6, random_state=seed)
    table = world.embeddings["att"]
    return world, ClassEmbeddings(table.names, table.vectors, columns=columns)


@pytest.fixture(scope="module")
def fitted():
    world, table = table_with(COLUMNS)
    return world, ESZSL(table, dtype="float64").fit(*world.training())


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 9999), st.integers(1, 40))
def test_families_share_out_the_sum(seed, n):
    rng = np.random.default_rng(seed)
    columns = [f"trait {i}" for i in range(n)]
    values = pd.Series(rng.normal(size=n) * 10.0 ** rng.integers(-6, 6, n), index=columns)
    family_of = {c: f"family {rng.integers(5)}" for c in columns if rng.random() < 0.7}
    families = gather(values, family_of)
    members = [name for family in families for name in family.members.index]
    assert sorted(members) == sorted(columns)
    for family in families:
        assert family.contribution == math.fsum(family.members)
        assert family.members.is_monotonic_decreasing
        for name in family.members.index:
            assert family_of.get(name, name) == family.name
    ranked = [family.contribution for family in families]
    assert ranked == sorted(ranked, reverse=True)
    assert math.fsum(ranked) == pytest.approx(math.fsum(values), abs=1e-9 * values.abs().max())


def test_columns_know_their_families():
    table = ClassEmbeddings(["x"], [[1] * 5], columns=["a::1", "a::2", "::b", "c::", "d"])
    assert family_of_columns(table) == {"a::1": "a", "a::2": "a"}
    assert family_of_columns(ClassEmbeddings(["x"], [[1, 2]])) == {}
    assert family_of_columns(table, {}) == {}


def test_raw_traits_are_families():
    raw = pd.DataFrame(
        {"mass": [12.0, 350.0, 9000.0], "my::diet": ["seeds", "fish", "fish; seeds"]},
        index=["wren", "gull", "swan"],
    )
    table = ClassEmbeddings.from_traits(raw)
    assert family_of_columns(table) == {
        "my::diet::fish": "my::diet",
        "my::diet::seeds": "my::diet",
    }


def test_families_can_be_given(tmp_path):
    table = ClassEmbeddings(["x"], [[1, 2, 3]], columns=["red", "blue", "heavy"])
    given_as = {"red": "colour", "blue": "colour"}
    path = tmp_path / "groups.csv"
    path.write_text("trait,family\nred,colour\nblue,colour\nheavy,\n")
    frame = pd.DataFrame({"family": ["colour", "colour", None]}, index=["red", "blue", "heavy"])
    for groups in (given_as, frame, frame["family"], path, str(path)):
        assert family_of_columns(table, groups) == given_as
    with pytest.raises(ValueError, match="groups names 'green', which are not columns"):
        family_of_columns(table, {"green": "colour"})
    with pytest.raises(ValueError, match="one column of families, but has 2: 'p', 'q'"):
        family_of_columns(table, pd.DataFrame({"p": ["x"], "q": ["y"]}, index=["red"]))
    with pytest.raises(TypeError, match="groups must be a mapping of column to family"):
        family_of_columns(table, ["red"])


def test_an_explanation_tells_families(fitted):
    world, model = fitted
    for why in explain_predictions(model, world.testing()[0][:10]):
        assert {family.name for family in why.families} == {"wing", "bill", "mass", "a", "b"}
        for family in why.families:
            own = [c for c in COLUMNS if c == family.name or c.startswith(f"{family.name}::")]
            assert family.contribution == pytest.approx(why.contributions[own].sum(), abs=1e-12)
        total = math.fsum(family.contribution for family in why.families)
        assert total == pytest.approx(why.lead, abs=1e-12)
        largest = max(why.families, key=lambda family: abs(family.contribution))
        assert [family.name for family in why.top_families(1)] == [largest.name]


def test_families_in_words(fitted):
    world, model = fitted
    why = explain_predictions(model, world.testing()[0][:1])[0]
    lines = why.text(9).splitlines()[2:]
    assert len(lines) == 5
    wing = next(line for line in lines if line.split()[0] == "wing")
    assert all(f"{colour} " in wing for colour in ("red", "blue", "grey"))
    assert "wing::" not in why.text()
    mass = next(line for line in lines if "mass" in line.split()).removeprefix("  less ")
    assert len(mass.split()) == 2
    assert "the other 3 families" in why.text(2)
    plain = explain_predictions(model, world.testing()[0][:1], groups={})[0]
    assert "wing::red" in plain.text()
    assert "the other 6 " in plain.text(2)
    both = {"a": "letters", "b": "letters"}
    given_ones = explain_predictions(model, world.testing()[0][:1], groups=both)[0]
    assert "letters" in given_ones.text()
    assert "wing::red" in given_ones.text()


def test_what_an_image_speaks_against_is_told_as_less():
    world, table = table_with(COLUMNS)
    model = ESZSL(table, dtype="float64", normalize_classes=False, center_classes=False)
    model.fit(*world.training())
    told = set()
    for why in explain_predictions(model, world.testing()[0][:8]):
        ahead = table[why.named] - table[why.runner_up]
        against = {
            column
            for column, more in zip(COLUMNS, ahead, strict=True)
            if why.contributions[column] * more < 0
        }
        assert why.less == against
        for family in why.to_dict(9, n_members=9)["families"]:
            for member in family["members"]:
                short = member["name"].removeprefix(f"{family['name']}::")
                less = member["name"] in against
                assert member["words"] == (f"less {short}" if less else short)
                assert not less or f"less {short} " in why.text(9)
        told |= {column in against for column in COLUMNS}
    assert told == {True, False}


def test_as_plain_data(fitted):
    world, model = fitted
    why = explain_predictions(model, world.testing()[0][:1])[0]
    data = json.loads(json.dumps(why.to_dict(2, n_members=1)))
    assert (data["named"], data["runner_up"]) == (str(why.named), str(why.runner_up))
    assert data["score"] - data["runner_up_score"] == data["lead"] == why.lead
    assert (data["map"], data["chosen"], data["rest"]["n"]) == (why.map, False, 3)
    total = sum(family["contribution"] for family in data["families"])
    assert total + data["rest"]["contribution"] == pytest.approx(why.lead, abs=1e-12)
    for family in data["families"]:
        parts = [one["contribution"] for one in family["members"]]
        assert len(parts) == 1
        whole = sum(parts) + family["rest"]["contribution"]
        assert whole == pytest.approx(family["contribution"], abs=1e-12)
    everything = why.to_dict(99, n_members=99)
    assert everything["rest"]["n"] == 0
    names = [one["name"] for family in everything["families"] for one in family["members"]]
    assert sorted(names) == sorted(COLUMNS)
    with pytest.raises(ValueError, match="members must be at least 1, but is 0"):
        why.to_dict(n_members=0)


def test_number_names_are_plain_data_too():
    rng = np.random.default_rng(0)
    model = ESZSL((range(6), rng.normal(size=(6, 4)))).fit(
        rng.normal(size=(20, 3)), np.arange(20) % 4
    )
    why = explain_predictions(model, rng.normal(size=(1, 3)), "all")[0]
    assert isinstance(json.loads(json.dumps(why.to_dict()))["named"], int)


def test_families_are_drawn_with_their_members(fitted, tmp_path):
    world, model = fitted
    why = explain_predictions(model, world.testing()[0][:1])[0]
    axes = why._figure(3).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    shown = why.top_families(3)
    assert [label for label in labels if not label.startswith("·")] == [
        *(family.title for family in shown),
        "the other 2 families",
    ]
    widths = {label: bar.get_width() for label, bar in zip(labels, axes.containers[0], strict=True)}
    whole = sum(width for label, width in widths.items() if not label.startswith("·"))
    assert whole == pytest.approx(why.lead)
    why.plot(tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")


def test_one_name_to_compare_all_images_with(fitted):
    world, model = fitted
    X = world.testing()[0][:6]
    worst = str(model.top_k(X, 10, classes="unseen")[0, -1])
    whys = explain_predictions(model, X, against=worst)
    assert whys[0].runner_up == worst
    for why in whys:
        assert worst in (why.named, why.runner_up)


@pytest.mark.skipif(not (SHARED / "cub").is_dir(), reason="needs the shared CUB dataset")
def test_birds_have_28_families():
    table = read_folder(SHARED / "cub").embeddings["att"]
    families = family_of_columns(table)
    assert len(families) == table.n_dimensions == 312
    assert len(set(families.values())) == 28


def test_thousands_of_lone_traits_are_gathered_quickly():
    values = pd.Series(np.arange(5000.0), index=[f"trait {i}" for i in range(5000)])
    start = time.process_time()  # what others do on the machine does not count
    families = gather(values, {})
    assert time.process_time() - start < 3  # looking each up by its name took ten seconds
    assert [family.contribution for family in families[:2]] == [4999, 4998]


def test_families_are_gathered_once(fitted):
    world, model = fitted
    (why,) = explain_predictions(model, world.features[:1], "all")
    assert why.families is why.families
