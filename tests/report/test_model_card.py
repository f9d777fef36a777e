"""What a model file holds, for people."""

from dataclasses import replace

import pytest

import latem
from latem import LateFusion, Measured, make_latent_world, read_info
from latem.report.model_card import info_lines, model_card


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)


@pytest.fixture(scope="module")
def found(world, tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "m.safetensors"
    latem.train(world).save(path)
    return read_info(path)


def entry(lines, label):
    (line,) = [line for line in lines if line.startswith(f"{label}  ")]
    return line.removeprefix(label).strip()


def test_lines_say_everything_once(found):
    lines = info_lines(found)
    assert entry(lines, "model") == "Committee"
    assert entry(lines, "seen classes").startswith("12: class 00, class 01")
    assert entry(lines, "seen classes").endswith("and 4 more")
    assert entry(lines, "unseen classes").startswith("10: class 12")
    assert entry(lines, "class table") == "att, 8 columns"
    assert entry(lines, "features") == "32, encoder not known"
    assert f"temperature {found.temperature:.3g}" in entry(lines, "answers")
    assert "false-accept rate 0.05" in entry(lines, "answers")
    assert "(chance 10.0%)" in entry(lines, "accuracy, unseen")
    assert found.training_digest in entry(lines, "training images")
    assert f"latem {latem.__version__}" in entry(lines, "written with")
    members = [line for line in lines if line.startswith("member ")]
    assert [line.split()[1] for line in members] == ["ranking", "kernel", "exemplars", "whitened"]
    assert not any("stored" in line or "n_threads" in line for line in lines)


def test_what_a_file_does_not_know(world, tmp_path):
    model = latem.ESZSL(world.embeddings["att"])
    model.records_training = False
    model.fit(*world.training()).save(tmp_path / "m")
    lines = info_lines(read_info(tmp_path / "m"))
    assert entry(lines, "answers") == "not calibrated"
    assert entry(lines, "training images") == "not recorded"
    assert not any(line.startswith("accuracy") for line in lines)
    card = model_card(read_info(tmp_path / "m"))
    assert "The file does not say: the model was not trained by `latem train`." in card
    assert "- Probabilities are not calibrated." in card
    assert "still gets the most compatible name." in card


def test_the_card_has_its_parts(found):
    card = model_card(found)
    heads = [line for line in card.splitlines() if line.startswith("#")]
    assert heads == [
        "# Committee: names 22 classes", "## What it can name", "## How it was trained",
        "## How good it is", "## Limits", "## Versions",
    ]  # fmt: skip
    score = found.measured.unseen_score
    assert f"- accuracy, unseen: {score:.1%} per class, among 10 (chance 10.0%)" in card
    assert "5% of other classes' pictures are named without doubt" in card
    assert f"- latem {latem.__version__}" in card
    assert "\n\n\n" not in card
    assert card.endswith("\n")


def test_a_search_and_a_fusion(world, tmp_path):
    table = world.embeddings["att"]
    search = latem.HeldOutSearch(latem.ESZSL(table), {"gamma": [0.1, 1.0]}, cv=3, random_state=0)
    search.fit(*world.training()).save(tmp_path / "s")
    lines = info_lines(read_info(tmp_path / "s"))
    assert entry(lines, "model") == "HeldOutSearch (chose ESZSL)"
    assert entry(lines, "accuracy, held out") == f"{search.best_score_:.1%} per class"
    assert "# ESZSL, by HeldOutSearch: names 22" in model_card(read_info(tmp_path / "s"))
    LateFusion([("a", latem.ESZSL(table)), ("b", latem.CCA(table))]).fit(*world.training()).save(
        tmp_path / "f"
    )
    card = model_card(read_info(tmp_path / "f"))
    assert "- member a: ESZSL" in card
    assert "Classes cannot be added by one table" in card


def test_names_cannot_write_the_card_or_steer_the_terminal(found):
    odd = replace(
        found,
        seen=("a\n# b", "[x](http://y)", "\x1b[31mred", "<script>"),
        measured=Measured(dataset="`rm`\n- x", chosen={"a": "`b`"}),
    )
    card = model_card(odd)
    assert "a \\# b, \\[x\\](http://y),  \\[31mred, \\<script\\>" in card
    assert "\x1b" not in card
    assert "<script>" not in card.replace("\\<script", "")
    assert "\n- x" not in card
    assert "`a 'b'`" in card
    assert "\x1b" not in "\n".join(info_lines(odd))
