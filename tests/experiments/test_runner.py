"""The paper's tables: their data, the runner, and what it leaves behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from page_reader import Reader
from typer.testing import CliRunner

from latem import ClassEmbeddings, LatEm, make_latent_world, write_folder
from latem.cli import app
from latem.datasets import random_class_splits
from latem.experiments.code_digest import code_key
from latem.experiments.estimate import reference_seconds
from latem.experiments.fits import Fit, class_table, digest_dataset, run_fit
from latem.experiments.runner import reproduce
from latem.experiments.store import Store
from latem.experiments.tables import read_protocols
from latem.metrics import mean_class_accuracy


def small_world(seed, embeddings):
    """A dataset with five splits and several class tables that all mean something."""
    world = make_latent_world(n_seen=16, n_unseen=5, n_images=6, n_features=12, random_state=seed)
    table = world.embeddings["att"]
    rng = np.random.default_rng(seed)
    tables = {
        name: ClassEmbeddings(table.names, table.vectors @ rng.normal(size=(8, 6)), name=name)
        for name in embeddings
    }
    world = replace(world, images=np.array([f"{i}.png" for i in range(len(world.labels))]))
    if "att" in tables:
        tables["att"] = replace_vectors(table, table.vectors - table.vectors.min())
    return replace(world, embeddings=tables)


def replace_vectors(table, vectors):
    columns = [f"trait {i}" for i in range(vectors.shape[1])]
    return ClassEmbeddings(table.names, vectors, name="att", columns=columns)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with CUB and Dogs, without AWA."""
    folder = tmp_path_factory.mktemp("data")
    write_folder(small_world(0, ["att", "glo", "hie"]), folder / "cub")
    write_folder(small_world(1, ["w2v", "hie"]), folder / "dogs")
    return folder


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "out"
    return reproduce(data, out, n_epochs=2, n_jobs=2), out


def table_of(summary, name):
    return next(table for table in summary["tables"] if table["id"] == name)


def cell_of(summary, name, row, group, column):
    table = table_of(summary, name)
    line = table["cells"][table["rows"].index(row)]
    return line[table["columns"].index([group, column])]


# -- the data ---------------------------------------------------------------------------------


def test_recipes_are_models_that_can_be_made():
    world = small_world(0, ["att"])
    for recipe in read_protocols().recipes.values():
        given = {**recipe.params, **{k: v[0] for k, v in {**recipe.tune, **recipe.grid}.items()}}
        if given.get("learning_rate") == "dataset":
            given["learning_rate"] = 0.1
        fit = Fit.of(
            dataset="CUB", split="standard", part="all", embeddings=("att",), model=recipe.model,
            params=given, seed=0,
        )  # fmt: skip
        from latem.experiments.fits import make_model

        make_model(fit, world.embeddings["att"], given, world.split().val)._validate_params()


# -- the numbers ------------------------------------------------------------------------------


def test_numbers_are_those_of_the_models_trained_by_hand(done):
    from latem import ESZSLCV

    result, _ = done
    world = small_world(0, ["att", "glo", "hie"])
    X, y = world.training()
    cell = cell_of(result.summary, "table2", "glo", "CUB", "LatEm")
    n_maps = int(cell["note"].removeprefix("K = "))
    scores = {}
    for k in (2, 4, 6, 8, 10):
        model = LatEm(world.embeddings["glo"], n_maps=k, n_epochs=2, random_state=0)
        scores[k] = model.fit(*world.training(val=False)).score(*world.validation())
    assert n_maps == max(scores, key=scores.get)
    model = LatEm(world.embeddings["glo"], n_maps=n_maps, n_epochs=2, random_state=0).fit(X, y)
    assert cell["ours"] == pytest.approx(100 * model.score(*world.testing()))
    star = ESZSLCV(
        world.embeddings["att"], cv=list(world.split().val), feature_scaling=None,
        gammas=10.0 ** np.arange(-3, 6), random_state=0,
    ).fit(X, y)  # fmt: skip
    cell = cell_of(result.summary, "appendix_a", "att", "CUB", "ESZSL*")
    assert cell["ours"] == pytest.approx(100 * star.score(*world.testing()))


def test_five_splits_are_averaged(done):
    result, _ = done
    cell = cell_of(result.summary, "table4", "hie", "Dogs", "LatEm")
    one = cell_of(result.summary, "table2", "hie", "Dogs", "LatEm")
    assert cell["error"] > 0
    assert len(cell["note"].split(",")) == 5
    assert cell["note"].startswith(one["note"])


def test_combined_scores_are_those_of_late_fusion(done, data):
    """With weights chosen on val classes, beside the paper's number, and by the plain mean."""
    from latem import SJE, LateFusion, read_folder

    result, _ = done
    cub = read_folder(data / "cub")
    models = []
    for name in ("glo", "hie"):
        best = (-1.0, None)
        for rate in (0.01, 0.1, 1.0):
            model = SJE(cub.embeddings[name], learning_rate=rate, n_epochs=2, random_state=0)
            score = model.fit(*cub.training(val=False)).score(*cub.validation())
            best = max(best, (score, rate), key=lambda pair: pair[0])
        models.append((name, model.set_params(learning_rate=best[1])))
    fused = LateFusion(models).fit(*cub.training())
    cell = cell_of(result.summary, "appendix_b", "glo hie, mean", "CUB", "cmb SJE")
    assert cell["ours"] == pytest.approx(100 * fused.score(*cub.testing()))
    assert (cell["paper"], cell["status"], cell["note"]) == (None, "ok", "")
    fused.fit(*cub.training(val=False)).choose_weights(*cub.validation()).fit(*cub.training())
    cell = cell_of(result.summary, "appendix_b", "glo hie", "CUB", "cmb SJE")
    assert cell["ours"] == pytest.approx(100 * fused.score(*cub.testing()))
    assert cell["paper"] == 29.9
    glo, hie = fused.weights
    assert cell["note"] == f"weights glo {glo:.1f}, hie {hie:.1f}"


def test_concatenated_embeddings_have_no_mean(done):
    result, _ = done
    cell = cell_of(result.summary, "appendix_b", "glo hie, mean", "CUB", "cnc SJE")
    assert (cell["ours"], cell["status"]) == (None, "none")
    skipped = cell_of(result.summary, "table3", "with attributes, plain mean", "CUB", "LatEm")
    assert (skipped["status"], skipped["note"]) == ("skipped", "skipped: no w2v in CUB")


def test_early_fusion_is_that_of_class_tables():
    world = small_world(0, ["att", "glo", "hie"])
    att, glo, hie = world.embeddings.values()
    np.testing.assert_array_equal(
        class_table(world, ("att", "glo")).vectors, att.concat(glo).vectors
    )
    table = class_table(world, ("att", "glo", "hie"))
    assert table == att.concat(glo, hie)
    np.testing.assert_allclose(np.linalg.norm(table.vectors, axis=1), 1)
    for columns in (slice(0, 8), slice(8, 14), slice(14, 20)):  # all weigh the same
        np.testing.assert_allclose(np.linalg.norm(table.vectors[:, columns], axis=1), 3**-0.5)


def test_early_fusion_is_over_the_classes_that_all_tables_describe():
    world = small_world(0, ["att", "glo"])
    att, glo = world.embeddings.values()
    common = glo.names[3:][::-1].tolist()
    fewer = ClassEmbeddings(common, glo.select(common).vectors)  # and without a name
    table = class_table(replace(world, embeddings={"att": att, "glo": fewer}), ("att", "glo"))
    assert table.names.tolist() == att.names[3:].tolist()
    assert table.name == "att+glo"
    assert table == att.select(att.names[3:]).concat(glo.select(att.names[3:]))
    assert class_table(world, ("glo",)) is glo


def test_what_is_missing_is_skipped_by_name(done):
    result, _ = done
    cell = cell_of(result.summary, "table2", "w2v", "CUB", "LatEm")
    assert cell["ours"] is None
    assert cell["status"] == "skipped"
    assert cell["note"] == "skipped: no w2v in CUB"
    assert cell["paper"] == 31.8
    awa = cell_of(result.summary, "table2", "att", "AWA", "SJE")
    assert awa["note"].startswith("skipped: no AWA in")
    none = cell_of(result.summary, "table2", "att", "Dogs", "SJE")
    assert none["status"] == "none"
    assert any("no AWA in" in note for note in result.summary["notes"])
    assert result.summary["curves"][0]["skipped"] == ["w2v skipped: no w2v in CUB"]


def test_absent_datasets_are_told_once(data, tmp_path):
    shutil.copytree(data / "dogs", tmp_path / "data" / "dogs")
    result = reproduce(tmp_path / "data", tmp_path / "out", ["table1", "figure2", "figure3"])
    assert result.n_trained == 0
    assert result.summary["curves"] == []
    assert table_of(result.summary, "table1")["absent"] == ["CUB", "AWA"]
    text = Reader((tmp_path / "out" / "report.html").read_text()).text
    assert text.count("no CUB in") == text.count("no AWA in") == 1
    assert "not run" not in text.replace("mean difference not run", "")


def test_statistics_are_counted(done):
    result, _ = done
    line = table_of(result.summary, "table1")["cells"][0]
    assert [cell["ours"] for cell in line] == [126, 21, 96, 16, 30, 5]


def test_a_model_that_several_tables_need_is_trained_once(data, tmp_path):
    together = reproduce(data, tmp_path / "a", ["table2", "table5_left"], n_epochs=1)
    pruned = 3 + 2
    alone = reproduce(data, tmp_path / "b", ["table2"], n_epochs=1)
    assert together.n_trained == alone.n_trained + pruned
    again = reproduce(data, tmp_path / "b", ["table2"], n_epochs=1)
    assert (again.n_trained, again.n_kept) == (0, alone.n_trained)
    assert alone.ratio > 0
    assert again.ratio is None  # a speed is only told of models that this run has trained
    assert json.loads((tmp_path / "b" / "run.json").read_text())["ratio_to_numpy"] is None


# -- the run folder ---------------------------------------------------------------------------


def test_files_of_a_run(done):
    result, out = done
    assert {"report.html", "results.csv", "results.json", "run.json", "cells"} <= {
        path.name for path in out.iterdir()
    }
    stored = json.loads((out / "results.json").read_text())
    assert stored["tables"] == result.summary["tables"]
    lines = (out / "results.csv").read_text().splitlines()
    assert lines[0].startswith("table,row,group,column,ours,standard_error,paper,difference")
    assert any(line.startswith("table2,att,CUB,LatEm,") for line in lines)
    run = json.loads((out / "run.json").read_text())
    assert run["trained"] == result.n_trained > 100
    assert run["ratio_to_numpy"] > 0
    page = (out / "report.html").read_text()
    assert "no w2v in CUB" in page


def test_same_bytes_whatever_the_number_of_jobs(data, done, tmp_path):
    _, out = done
    reproduce(data, tmp_path / "one", n_epochs=2, n_jobs=1)
    for name in ("results.json", "results.csv", "report.html"):
        assert (tmp_path / "one" / name).read_bytes() == (out / name).read_bytes(), name


def test_killed_and_continued(data, done, tmp_path):
    result, out = done
    command = [
        sys.executable, "-m", "latem", "reproduce", "--data", str(data), "--out",
        str(tmp_path / "killed"), "--epochs", "2", "--jobs", "2",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cells = tmp_path / "killed" / "cells"
    deadline = time.monotonic() + 600
    while len(list(cells.glob("*.json"))) < 8:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(cells.glob("*.json")))
    assert 8 <= finished < result.n_trained
    assert not (tmp_path / "killed" / "run.json").exists()
    again = reproduce(data, tmp_path / "killed", n_epochs=2)
    assert again.n_kept == finished
    for name in ("results.json", "results.csv", "report.html"):
        assert (tmp_path / "killed" / name).read_bytes() == (out / name).read_bytes(), name


@pytest.mark.parametrize("damage", ["empty json", "no npy", "short npy", "no seconds", "odd json"])
def test_damaged_results_are_made_again(data, tmp_path, damage):
    first = reproduce(data, tmp_path, ["appendix_b"], n_epochs=1)
    before = (tmp_path / "results.json").read_bytes()
    kind = {"json": ".json", "npy": ".npy", "seconds": ".seconds"}[damage.split()[1]]
    path = next(p for p in sorted((tmp_path / "cells").iterdir()) if p.suffix == kind)
    if damage.startswith("no"):
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "short": b"\x93NUMPY", "odd": b"{}"}[damage.split()[0]])
    again = reproduce(data, tmp_path, ["appendix_b"], n_epochs=1)
    assert (again.n_trained, again.n_kept) == (1, first.n_trained - 1)
    assert (tmp_path / "results.json").read_bytes() == before


def test_unsuitable_datasets_are_skipped_by_name(data, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    shutil.rmtree(copy / "dogs")
    dogs = small_world(1, ["w2v", "hie"])
    split = dogs.split()
    write_folder(replace(dogs, splits={"mine": split}), copy / "dogs")
    write_folder(small_world(2, ["att", "w2v"]), copy / "awa")
    table = copy / "awa" / "embeddings" / "w2v.csv"
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join(line for line in lines if not line.startswith(split.train[0])))
    result = reproduce(copy, tmp_path / "out", ["table2"], n_epochs=1)
    note = cell_of(result.summary, "table2", "hie", "Dogs", "SJE")["note"]
    assert "has no split 'standard'" in note
    assert cell_of(result.summary, "table2", "att", "AWA", "SJE")["status"] == "ok"
    assert "does not describe" in cell_of(result.summary, "table2", "w2v", "AWA", "SJE")["note"]


def test_other_data_is_not_taken_for_the_old(data, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    first = reproduce(copy, tmp_path / "out", ["table2"], n_epochs=1)
    other = small_world(5, ["att", "glo", "hie"])
    shutil.rmtree(copy / "cub")
    write_folder(other, copy / "cub")
    second = reproduce(copy, tmp_path / "out", ["table2"], n_epochs=1)
    assert 0 < second.n_trained < first.n_trained  # the dogs are still good
    assert digest_dataset(other) != digest_dataset(small_world(0, ["att", "glo", "hie"]))


def test_results_of_other_code_are_not_taken(data, tmp_path, monkeypatch):
    first = reproduce(data, tmp_path, ["table5_left"], n_epochs=1)
    monkeypatch.setattr("latem.experiments.runner.code_key", lambda: ("edited", ""))
    second = reproduce(data, tmp_path, ["table5_left"], n_epochs=1)
    assert (second.n_trained, second.n_kept) == (first.n_trained, 0)


def test_the_report_says_if_edited_code_goes_unnoticed(data, tmp_path, monkeypatch):
    monkeypatch.setattr("latem.experiments.runner.code_key", lambda: code_key(tmp_path))
    result = reproduce(data, tmp_path / "out", ["table1"])
    (note,) = [note for note in result.summary["notes"] if "told apart" in note]
    assert "by latem's version (" in note
    assert "The source of latem.experiments.fits is not in" in note
    assert "delete the folder cells" in (tmp_path / "out" / "report.html").read_text()


def test_splits_are_drawn_where_there_are_none(tmp_path):
    world = small_world(0, ["glo"])
    standard = world.split()
    write_folder(replace(world, splits={"standard": standard}), tmp_path / "data" / "cub")
    result = reproduce(tmp_path / "data", tmp_path / "out", ["table4"], n_epochs=1)
    assert cell_of(result.summary, "table4", "glo", "CUB", "LatEm")["error"] is not None
    sizes = len(standard.train), len(standard.val), len(standard.test)
    drawn = random_class_splits(standard.train + standard.val + standard.test, sizes, n=4)
    assert all(len(split.test) == 5 for split in drawn)


def test_a_step_size_that_nothing_needs_is_not_chosen(data, tmp_path):
    result = reproduce(data, tmp_path, ["table1"], n_epochs=1, select_learning_rate=True)
    assert (result.n_trained, result.n_kept) == (0, 0)
    step = result.summary["settings"]["LatEm's step"]
    assert step == "CUB not needed here, Dogs not needed here"


def test_equal_splits_are_counted_once_and_named(tmp_path):
    world = small_world(0, ["glo"])
    drawn = random_class_splits(world.classes.tolist(), (11, 5, 5), n=1, seed=9)[0]
    splits = {"standard": world.split(), "random1": drawn, "random2": drawn}
    write_folder(replace(world, splits=splits), tmp_path / "data" / "cub")
    result = reproduce(tmp_path / "data", tmp_path / "out", ["table1"])
    note = "CUB: its splits random1 and random2 divide the classes alike and count once."
    assert note in result.summary["notes"]
    assert note in (tmp_path / "out" / "report.html").read_text()


def test_step_sizes_can_be_chosen(data, tmp_path):
    result = reproduce(data, tmp_path, ["table5_left"], n_epochs=1, select_learning_rate=True)
    step = result.summary["settings"]["LatEm's step"]
    world = small_world(0, ["att", "glo", "hie"])
    scores = {}
    for rate in (0.001, 0.01, 0.1, 1.0):
        model = LatEm(world.embeddings["att"], learning_rate=rate, n_epochs=1, random_state=0)
        scores[rate] = model.fit(*world.training(val=False)).score(*world.validation())
    assert f"CUB {max(scores, key=scores.get)} (chosen on val classes)" in step


def test_other_features_than_the_paper_s_get_a_step_of_their_own(tmp_path):
    write_folder(small_world(0, ["att"]), tmp_path / "data" / "awa_handcrafted")
    result = reproduce(tmp_path / "data", tmp_path / "out", ["table5_left"], n_epochs=1)
    assert "(chosen on val classes)" in result.summary["settings"]["LatEm's step"]
    table = table_of(result.summary, "table5_left")
    assert (table["absent"], table["apart"]) == (["CUB", "Dogs"], ["AWA"])
    said = [note for note in result.summary["notes"] if "other features" in note]
    assert len(said) == 1
    assert said[0].startswith("AWA is here with other features than the paper's.")
    text = Reader((tmp_path / "out" / "report.html").read_text()).text
    assert "AWA with other features" in text
    assert "Table 5, left 0 0 0 0 – 2 6" in text  # both cells in the column of their own


def test_a_chosen_step_does_not_make_features_other_ones(data, tmp_path):
    result = reproduce(data, tmp_path, ["table5_left"], n_epochs=1, select_learning_rate=True)
    assert table_of(result.summary, "table5_left")["apart"] == []


def test_galleries_show_pictures_that_are_there(data, tmp_path):
    from PIL import Image

    copy = tmp_path / "data"
    shutil.copytree(data, copy)
    world = small_world(0, ["glo"])
    assert world.images is not None
    name = str(world.images[world.rows(world.split().test)][0])
    picture = copy / "cub" / "images" / name
    picture.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (30, 20), "red").save(picture, format="PNG")
    result = reproduce(copy, tmp_path / "out", ["figure2"], n_epochs=1)
    galleries = result.summary["galleries"]
    assert [g["title"] for g in galleries][:2] == [
        "CUB, glo, cross-validation", "CUB, glo, pruning"
    ]  # fmt: skip
    for gallery in galleries:
        for one in gallery["maps"]:
            names = [image["name"] for image in one["images"]]
            assert len(names) == len(set(names)) == 8
            assert all(
                (image["path"] is not None) == (image["name"] == name) for image in one["images"]
            )


def test_estimate_follows_visits_and_maps():
    cost = {
        "model": "LatEm", "n_images": 100, "n_features": 64, "n_dimensions": 32, "n_classes": 10,
        "maps": [4, 4], "violation_rate": [0.5, 0.5],
    }  # fmt: skip
    once = reference_seconds([cost])
    assert reference_seconds([cost, cost]) == pytest.approx(2 * once)
    assert reference_seconds([{**cost, "n_images": 1000}]) == pytest.approx(10 * once)


# -- the command ------------------------------------------------------------------------------


def test_command_line(data, tmp_path):
    run = CliRunner().invoke(
        app,
        ["reproduce", "table2", "--data", str(data), "--out", str(tmp_path / "o"), "--epochs", "1"],
    )
    assert run.exit_code == 0, run.output
    assert "Table 2" in run.output
    assert "models trained" in run.output
    assert "skipped (31.8)" in run.output
    assert "times as fast" in run.output
    assert "Table 2, Dogs: ours (paper)" in run.output
    assert "Table 2, AWA" not in run.output  # it is not there, which is said once
    assert run.output.count("no AWA in") == 1


def test_command_line_of_what_is_there_already(data, done, tmp_path):
    out = shutil.copytree(done[1], tmp_path / "again")
    run = CliRunner().invoke(
        app,
        ["reproduce", "table1", "appendix_b", "--data", str(data), "--out", str(out), "--epochs"]
        + ["2"],
    )
    assert run.exit_code == 0, run.output
    assert "0 models trained" in run.output
    assert "times as fast" not in run.output
    lines = [[part.strip() for part in line.split("│")[1:-1]] for line in run.output.splitlines()]
    (chosen,) = (i for i, line in enumerate(lines) if line[3:4] and line[3].endswith(" (29.9)"))
    assert lines[chosen][0] == "glo hie"
    assert lines[chosen][4].endswith(" (32.6)")
    mean = lines[chosen + 1]
    assert mean[0].startswith("glo hie,")  # where there is little room it goes on below
    assert mean[1:3] == ["–", "–"]
    assert all(re.fullmatch(r"\d+\.\d", text) for text in mean[3:])
    assert not any(line[:1] == ["AWA"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["table9", "--data", "DATA"], "The paper has no 'table9' here", 1),
        (["--data", "EMPTY"], "None of the paper's datasets is here", 1),
        (["--data", "DATA", "--dataset", "Cats=x"], "The paper has no dataset 'Cats'", 1),
        (["--data", "DATA", "--dataset", "CUB=nowhere"], "nowhere is not a dataset folder", 1),
        (["--data", "DATA", "--dataset", "CUB"], "--dataset takes KEY=FOLDER", 2),
        (["--data", "DATA", "--pictures", "CUB=nowhere"], "no folder nowhere with pictures", 1),
    ],
)
def test_misuse(arguments, message, code, data, tmp_path):
    places = {"DATA": str(data), "EMPTY": str(tmp_path)}
    arguments = [places.get(a, a) for a in arguments]
    run = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert run.exit_code == code
    assert message in " ".join(run.output.split())


def test_a_folder_with_other_things_is_left_alone(data, tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="holds no earlier run"):
        reproduce(data, tmp_path, ["table1"])


def test_scores_are_kept_and_read_back(tmp_path):
    world = small_world(0, ["glo"])
    fit = Fit.of(
        dataset="CUB", split="standard", part="all", embeddings=("glo",), model="ESZSL", params={},
        seed=0,
    )  # fmt: skip
    outcome = run_fit(fit, world)
    Store(tmp_path, {"CUB": "x"}, "code").put(fit, outcome)
    again = Store(tmp_path, {"CUB": "x"}, "code").get(fit)
    assert again.result == outcome.result
    np.testing.assert_array_equal(again.scores, outcome.scores)
    y = world.testing()[1]
    named = np.array(sorted(set(y)))[again.scores.argmax(axis=1)]
    assert mean_class_accuracy(y, named) == outcome.result["accuracy"]
    assert Store(tmp_path, {"CUB": "y"}, "code").get(fit) is None
    assert Store(tmp_path, {"CUB": "x"}, "other code").get(fit) is None
