"""Training from a dataset folder and naming pictures, by function and by command."""

import re
from dataclasses import replace

import numpy as np
import pytest
from helpers import command

import latem
from latem import (
    ClassEmbeddings,
    Committee,
    CommitteeCV,
    LatEm,
    LatEmCV,
    Split,
    make_latent_world,
    write_folder,
)
from latem.models import model_rows
from latem.workflows.name_pictures import name_pictures
from latem.workflows.train import check_kind, train_model

# which penalty suits so small a world best is not the point
SMALL = pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")


@pytest.fixture(scope="module")
def world():
    world = make_latent_world(n_seen=20, n_images=6, random_state=0)
    table = world.embeddings["att"]
    shifted = table.vectors - table.vectors.min()
    columns = [f"trait {i}" for i in range(8)]
    table = ClassEmbeddings(table.names, shifted, name="att", columns=columns)
    return replace(world, embeddings={"att": table})


@SMALL
def test_what_is_not_given_is_chosen_on_val_classes(world):
    done = train_model(world, "att", preset="paper", given={"n_epochs": 20})
    assert set(done.chosen) == {"n_maps", "learning_rate"}
    assert done.model.n_epochs == 20
    assert sorted(done.model.classes_) == sorted(world.split().train + world.split().val)
    assert done.unseen_score == done.model.score(*world.testing())
    given = {"n_maps": 3, "learning_rate": 0.1, "n_epochs": 5}
    told = train_model(world, "att", preset="paper", given=given)
    assert (told.chosen, told.held_out_score) == ({}, None)
    assert len(told.model.maps_) == 3


def test_a_committee_is_trained_unless_something_else_is_asked_for(world):
    done = train_model(world, "att", seed=3)
    search = CommitteeCV(world.embeddings["att"], cv=world.split().val, random_state=3)
    search.fit(*world.training())
    assert type(done.model) is Committee
    assert done.chosen == search.best_params_
    assert done.held_out_score == search.best_score_
    X, _ = world.testing()
    np.testing.assert_array_equal(
        done.model.decision_function(X, "all"), search.decision_function(X, "all")
    )
    assert done.chosen_words == search.words(search.best_params_)
    assert f"Chosen on held-out classes: {done.chosen_words} (" in done.lines()[0]
    assert hasattr(done.model, "acceptance_")
    for options in ({"preset": "tuned"}, {"given": {"n_epochs": 2}}):
        asked = train_model(world, "att", calibrate=False, **options)
        assert type(asked.model) is LatEm


def test_tuned_is_the_usual_preset(world):
    done = train_model(world, "att", kind="LatEm")
    assert set(done.chosen) == {"start_gamma", "start_lam", "n_epochs"}
    search = LatEmCV(
        world.embeddings["att"], preset="tuned", cv=world.split().val, random_state=0
    ).fit(*world.training())
    np.testing.assert_array_equal(done.model.maps_, search.best_estimator_.maps_)
    told = train_model(world, "att", preset="tuned", given={"n_maps": 3, "learning_rate": 0.1})
    assert told.model.maps_.shape[0] == 3
    assert told.model.learning_rate == 0.1
    assert not np.allclose(told.model.maps_[0], told.model.maps_[1])


@SMALL
@pytest.mark.parametrize("kind", ["ESZSL", "SemanticOutputCodes", "ConSE"])
def test_baselines_too(world, kind):
    done = train_model(world, "att", kind=kind)
    assert type(done.model).__name__ == kind
    assert done.held_out_score > 0


def test_every_model_on_the_command_line_can_be_asked_for():
    offered = [row.name for row in model_rows.rows() if row.on_command_line]
    assert {"LatEm", "ESZSL", "DAP"} < set(offered)
    for name in offered:
        check_kind(name, None)


def test_without_a_split_all_images_are_learned_from(world):
    bare = replace(world, splits={})
    done = train_model(bare, "att", kind="ESZSL")
    assert "none are left to test" in done.notes[0]
    assert len(done.model.classes_) == len(world.classes)
    assert done.unseen_score is None


def test_splits_with_nearly_all_classes_for_val(world):
    train = world.split().train
    few = replace(world, splits={"standard": Split(train[:1], train[1:4], world.split().test)})
    assert train_model(few, "att", kind="ESZSL").held_out_score is not None


@pytest.mark.parametrize("kind", [None, "LatEm", "ESZSL", "SJE"])
def test_too_few_classes_to_choose_on(world, kind):
    split = world.split()
    few = replace(world, splits={"standard": Split(split.train[:2], (), split.test)})
    done = train_model(few, "att", kind=kind)
    assert (done.chosen, done.held_out_score) == ({}, None)
    assert "Fewer than 4 classes" in done.notes[0]
    assert done.unseen_score is not None
    if kind == "LatEm":
        assert done.model.start == "eszsl"
    if kind is None:
        assert done.model.member_names_ == ["ranking", "kernel", "exemplars", "whitened"]


@SMALL
def test_few_val_classes_are_too_few_to_calibrate_on(world):
    """Then folds of all seen classes are held out in turn."""
    split = world.split()
    seen = split.train + split.val
    for n_val, n_used in ((2, len(seen)), (6, 6)):
        dealt = replace(split, train=seen[n_val:], val=seen[:n_val])
        done = train_model(replace(world, splits={"standard": dealt}), kind="ESZSL")
        assert done.answers.probabilities.n_classes == n_used


@SMALL
def test_what_was_chosen_is_told(world):
    done = train_model(world, "att", kind="ESZSL", false_accept_rate=0.1)
    lines = done.lines()
    assert sum("held-out classes" in line for line in lines) >= 3
    assert any("None of these: 10%" in line for line in lines)
    assert sum(done.unseen_verdicts) == pytest.approx(1)
    off = train_model(world, "att", kind="ESZSL", calibrate=False)
    assert off.answers is None
    assert not hasattr(off.model, "temperature_")
    assert len(off.lines()) == 2


@pytest.mark.filterwarnings("default::latem.GridEdgeWarning")
def test_a_choice_at_the_end_of_its_grid_is_one_line(world, tmp_path):
    write_folder(world, tmp_path / "d")
    line = ("train", tmp_path / "d", "--embedding", "att", "--model", "ESZSL", "-q", "--out")
    result = command(*line, tmp_path / "m.safetensors")
    assert result.exit_code == 0, result.output
    told = [line for line in result.stderr.splitlines() if "end of what was tried" in line]
    assert len(told) == 1
    assert told[0].startswith("latem: ESZSL did best at")
    assert told[0].endswith(", too.")


@SMALL
def test_bad_requests(world):
    with pytest.raises(ValueError, match="no model 'Latem'"):
        train_model(world, "att", kind="Latem")
    with pytest.raises(ValueError, match="no class table 'w2v'; it has 'att'"):
        train_model(world, "w2v")
    with pytest.raises(ValueError, match="Only LatEm has presets; train ESZSL without"):
        train_model(world, "att", kind="ESZSL", preset="tuned")
    with pytest.raises(ValueError, match="Only LatEm has presets; train Committee without"):
        train_model(world, "att", kind="Committee", preset="tuned")
    with pytest.raises(ValueError, match="committee chooses its parameters itself, 'weights' incl"):
        train_model(world, "att", kind="Committee", given={"weights": [1, 1, 1, 1]})
    with pytest.raises(ValueError, match="Committee has no parameter 'n_maps'"):
        train_model(world, "att", kind="Committee", given={"n_maps": 2})
    with pytest.raises(ValueError, match="'tuned' sets 'margin' itself"):
        train_model(world, "att", given={"margin": 0.5})
    with pytest.raises(ValueError, match="presets paper, tuned, not 'best'"):
        train_model(world, "att", preset="best")
    with pytest.raises(ValueError, match="ESZSL has no parameter 'n_maps'"):
        train_model(world, "att", kind="ESZSL", given={"n_maps": 2})
    with pytest.raises(ValueError, match="no split 'odd'"):
        train_model(world, "att", split="odd")
    table = world.embeddings["att"].select(world.embeddings["att"].names[:-1])
    with pytest.raises(ValueError, match="does not describe"):
        train_model(replace(world, embeddings={"att": table}), "att")
    model = train_model(world, "att", kind="ESZSL").model
    with pytest.raises(ValueError, match="does not know which encoder"):
        name_pictures(model, [])


def test_training_commands_that_cannot_work(world, tmp_path, monkeypatch):
    write_folder(world, tmp_path / "data")
    data = tmp_path / "data"
    run = command("train", data, "--embedding", "att", "--out", tmp_path / "no" / "m")
    assert run.exit_code == 1
    assert "There is no folder" in run.output
    with monkeypatch.context() as patch:  # it is told before anything is trained
        patch.setattr("latem.workflows.train.train_model", None)
        run = command("train", data, "--embedding", "att", "--out", tmp_path, "--model", "ESZSL")
        assert run.exit_code == 1
        assert "is a folder; name a file" in run.output
    run = command("train", data, "--embedding", "glo", "--out", tmp_path / "m", "-q")
    assert run.exit_code == 1
    assert "no class table 'glo'" in run.output
    assert not (tmp_path / "m").exists()
    run = command(
        "train", data, "--embedding", "att", "--out", tmp_path / "m", "--maps", 2, "--step", 0.1,
        "--epochs", 3, "--preset", "paper", "-q",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "Chosen" not in run.output
    assert len(latem.load(tmp_path / "m").maps_) == 2


def test_the_command_trains_a_committee_and_says_what_it_chose(world, tmp_path):
    write_folder(world, tmp_path / "data")
    run = command("train", tmp_path / "data", "--out", tmp_path / "m", "-q")
    assert run.exit_code == 0, run.output
    told = re.search(r"Chosen on held-out classes: ranking (0\.\d\d) \(start_gamma", run.output)
    model = latem.load(tmp_path / "m")
    assert type(model) is Committee
    assert float(told[1]) == pytest.approx(model.weights_[0], abs=0.0051)
    same = latem.train(tmp_path / "data")
    same.save(tmp_path / "same")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "same").read_bytes()
