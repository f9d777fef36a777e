"""`export_onnx` and `latem export`: what the file holds, and what is refused."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from export_runs import about, gap, onnx, open_session, run
from helpers import command, left_over

import latem
from latem import ClassEmbeddings, make_latent_world
from latem.export import onnx_file
from latem.export import translators as room
from latem.export.onnx_file import export_onnx

SPEC = {"name": "efficientnet-lite0", "n_features": 32}


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=6, noise=0.8, random_state=0)


@pytest.fixture(scope="module")
def images(world):
    parts = [np.asarray(X) for X, _ in (world.training(), world.testing())]
    return np.concatenate(parts)[::2].astype(np.float32)


@pytest.fixture(scope="module")
def model(world, images):
    """Calibrated, with a penalty on seen classes."""
    fitted = latem.train(world, kind="ESZSL")
    fitted.encoder_ = SPEC
    fitted.seen_penalty_ = float(np.std(fitted.decision_function(images, "seen")))
    return fitted


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "m.onnx"
    export_onnx(model, path, classes="all")
    return path


def by_answer(model, images, classes):
    """Best names and probabilities of all classes, as `answer` has them."""
    names = model.candidate_names(classes).tolist()
    answers = model.answer(images, classes, top=len(names))
    sure = np.array(
        [
            [one.probabilities[one.names.index(name)] for name in names]
            for one in answers
        ]
    )  # fmt: skip
    return [names.index(one.names[0]) for one in answers], sure


def test_answers_are_those_of_the_model(model, images, file):
    found = run(file, features=images)
    best, sure = by_answer(model, images, "all")
    np.testing.assert_array_equal(found["best"], best)
    np.testing.assert_allclose(found["probabilities"], sure, atol=1e-5)
    assert gap(found["scores"], model.decision_function(images, "all")) < 1e-5  # no penalty there
    plain = run(file, features=images, seen_penalty=np.zeros(1, np.float32))
    assert (plain["best"] != found["best"]).any()  # the penalty decides some of them
    np.testing.assert_array_equal(plain["scores"], found["scores"])
    np.testing.assert_allclose(
        plain["probabilities"], model.predict_proba(images, "all"), atol=1e-5
    )


def test_a_penalty_only_where_seen_and_unseen_are_mixed(model, images, tmp_path):
    for classes in ("seen", "unseen"):
        export_onnx(model, tmp_path / "m.onnx", classes=classes)
        found = run(tmp_path / "m.onnx", features=images)
        best, sure = by_answer(model, images, classes)
        np.testing.assert_array_equal(found["best"], best)
        np.testing.assert_allclose(found["probabilities"], sure, atol=1e-5)


def test_other_classes_with_flags_and_a_penalty_of_their_own(model, images, tmp_path):
    export_onnx(model, tmp_path / "m.onnx", classes="unseen")
    names = [*model.classes_[:4].tolist(), *model.candidate_names("unseen")[:3].tolist()]
    found = run(
        tmp_path / "m.onnx",
        features=images,
        class_table=model.class_table_.select(names).vectors.astype(np.float32),
        seen=np.array([True] * 4 + [False] * 3),
        seen_penalty=np.array([model.seen_penalty_], np.float32),
    )
    best, sure = by_answer(model, images, names)
    np.testing.assert_array_equal(found["best"], best)
    np.testing.assert_allclose(found["probabilities"], sure, atol=1e-5)


def test_fixed_classes(model, images, file, tmp_path):
    model.save(tmp_path / "m.safetensors")
    out = tmp_path / "m.onnx"
    done = command(
        "export", tmp_path / "m.safetensors", "--onnx", out, "--classes", "all", "--fixed-classes"
    )
    assert done.exit_code == 0, done.output
    found, expected = run(out, features=images), run(file, features=images)
    for name in ("scores", "probabilities"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6)
    np.testing.assert_array_equal(found["best"], expected["best"])
    given = [one.name for one in open_session(out).get_overridable_initializers()]
    assert given == ["seen", "seen_penalty", "false_accept_rate"]


@pytest.mark.parametrize("n", [0, 1, 7])
def test_any_number_of_images(model, images, file, n):
    found = run(file, features=images[:n])
    assert found["scores"].shape == (n, len(model.class_table_))
    assert found["best"].shape == (n,)


def test_the_file_tells_what_it_is(model, file):
    told = about(file)
    assert told["model"] == "ESZSL"
    assert told["classes"] == model.candidate_names("all").tolist()
    assert told["seen"] == [name in model.classes_ for name in told["classes"]]
    assert told["encoder"] == SPEC
    assert told["calibration"] == {
        "temperature": model.temperature_, "seen_penalty": model.seen_penalty_
    }  # fmt: skip
    assert told["tables"] == [{"name": "att", "columns": None}]
    assert told["training_digest"] == model.training_digest_
    assert told["versions"]["latem"] == latem.__version__
    assert told["versions"]["onnx"] == onnx.__version__
    session = open_session(file)
    assert [(one.name, one.type) for one in session.get_inputs()] == [
        ("features", "tensor(float)"),
    ]
    assert [(one.name, one.type) for one in session.get_overridable_initializers()] == [
        ("class_table", "tensor(float)"), ("seen", "tensor(bool)"),
        ("seen_penalty", "tensor(float)"), ("rivals", "tensor(bool)"),
        ("false_accept_rate", "tensor(float)"),
    ]  # fmt: skip
    onnx.checker.check_model(onnx.load(file), full_check=True)


def test_the_same_model_gives_the_same_bytes(model, file, tmp_path):
    export_onnx(model, tmp_path / "again.onnx", classes="all")
    assert (tmp_path / "again.onnx").read_bytes() == file.read_bytes()


def test_classes_of_every_kind(model, world, images, tmp_path):
    table = world.embeddings["att"]
    new = ClassEmbeddings(["a", "b"], table.vectors[:2] * 0.5 + table.vectors[2:4])
    for classes in (["class 01", "class 05"], new, ["unseen", "class 01", new]):
        written = export_onnx(model, tmp_path / "m.onnx", classes=classes)
        assert list(written.names) == model.candidate_names(classes).tolist()
        found = run(tmp_path / "m.onnx", features=images)["scores"]
        assert gap(found, model.decision_function(images, classes)) < 1e-5
    written = export_onnx(model, tmp_path / "m.onnx", classes=iter(["class 02", "class 03"]))
    assert written.names == ("class 02", "class 03")
    with pytest.raises(ValueError, match="classes must be 'seen'"):
        export_onnx(model, tmp_path / "m.onnx", classes="nonsense")


def test_names_that_are_numbers(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.repeat(np.arange(4), 10)
    model = latem.ESZSL(ClassEmbeddings(range(6), rng.normal(size=(6, 3)))).fit(X, y)
    assert export_onnx(model, tmp_path / "m.onnx").names == (4, 5)
    assert about(tmp_path / "m.onnx")["classes"] == [4, 5]
    one_hot = latem.ESZSL().fit(X, y)
    with pytest.raises(ValueError, match="no unseen classes"):
        export_onnx(one_hot, tmp_path / "n.onnx")
    assert export_onnx(one_hot, tmp_path / "n.onnx", classes="seen").names == (0, 1, 2, 3)


def test_two_seen_classes_have_a_score_each(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5)).astype(np.float32), np.repeat(["a", "b"], 10)
    model = latem.ESZSL().fit(X, y)
    export_onnx(model, tmp_path / "m.onnx", classes="seen")
    assert gap(run(tmp_path / "m.onnx", features=X)["scores"], model.class_scores(X, "seen")) < 1e-5


def test_features_with_names(world, images, tmp_path):
    X, y = world.training()
    frame = pd.DataFrame(np.asarray(X), columns=[f"f{i}" for i in range(32)])
    model = latem.ESZSL(world.embeddings["att"])
    for one in (model, latem.LateFusion([("a", model)])):
        export_onnx(one.fit(frame, y), tmp_path / "m.onnx")
        assert about(tmp_path / "m.onnx")["feature_names"] == list(frame.columns)


def test_the_file_says_nothing_of_the_machine(world, tmp_path):
    model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    model.encoder_ = {"name": "onnx", "weights": str(tmp_path / "net.onnx"), "digest": "x"}
    export_onnx(model, tmp_path / "m.onnx")
    assert about(tmp_path / "m.onnx")["encoder"] == {**model.encoder_, "weights": "net.onnx"}
    assert str(tmp_path).encode() not in (tmp_path / "m.onnx").read_bytes()


def test_what_was_never_calibrated_is_noted(world, images, tmp_path):
    model = latem.CCA(world.embeddings["att"]).fit(*world.training())
    written = export_onnx(model, tmp_path / "m.onnx")
    assert "never calibrated" in written.notes[0]
    assert about(tmp_path / "m.onnx")["calibration"] == {}
    found = run(tmp_path / "m.onnx", features=images)["probabilities"]
    with pytest.warns(latem.UncalibratedWarning):
        np.testing.assert_allclose(found, model.predict_proba(images, "unseen"), atol=1e-5)


@pytest.mark.parametrize("opset", [12, 1000, 17.0, True, None])
def test_opsets_that_cannot_be(model, opset, tmp_path):
    with pytest.raises(ValueError, match="opset must be a whole number from 13 to"):
        export_onnx(model, tmp_path / "m.onnx", opset=opset)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_fitted_model(world, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(TypeError, match="export_onnx takes a model of latem, not str"):
        export_onnx("model.safetensors", tmp_path / "m.onnx")
    with pytest.raises(NotFittedError):
        export_onnx(latem.ESZSL(world.embeddings["att"]), tmp_path / "m.onnx")


def test_places_that_cannot_be_written(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        export_onnx(model, tmp_path / "none" / "m.onnx")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        export_onnx(model, tmp_path)
    with pytest.raises(ValueError, match=r"m\.onx must end in \.onnx"):
        export_onnx(model, tmp_path / "m.onx")


def test_a_graph_that_computes_something_else_is_not_written(model, tmp_path, monkeypatch):
    monkeypatch.setitem(
        room._TRANSLATORS, "ESZSL", lambda model, X, classes: room._maps(model, -X, classes)
    )
    with pytest.raises(ValueError, match="differ from those of the model by .*Nothing was written"):
        export_onnx(model, tmp_path / "m.onnx")
    assert left_over(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    assert export_onnx(model, tmp_path / "m.onnx", check=False).difference is None


def test_an_opset_that_the_runtime_does_not_know(model, tmp_path, monkeypatch):
    def refuse(content):
        raise RuntimeError("no such opset")

    monkeypatch.setattr("latem.features.onnx_encoder.open_session", refuse)
    with pytest.raises(ValueError, match=r"cannot run this graph \(opset 14\): no such opset"):
        export_onnx(model, tmp_path / "m.onnx", opset=14)
    assert list(tmp_path.iterdir()) == []


def test_tables_and_graphs_that_are_too_large(world, tmp_path, monkeypatch):
    table = world.embeddings["att"]
    large = ClassEmbeddings(table.names, table.vectors * 1e300)
    model = latem.ESZSL(large).fit(*world.training())
    with pytest.raises(ValueError, match="too large for float32"):
        export_onnx(model, tmp_path / "m.onnx")
    monkeypatch.setattr(onnx_file, "_LARGEST", 1000)
    with pytest.raises(ValueError, match="an ONNX file holds less than 2 GB"):
        export_onnx(latem.ESZSL(table).fit(*world.training()), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_the_libraries(model, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        written = export_onnx(model, tmp_path / "m.onnx")
    assert written.difference is None
    assert "Not checked" in written.notes[-1]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "onnx", None)
        with pytest.raises(ImportError, match=r"needs onnx: pip install 'latem\[onnx\]'"):
            export_onnx(model, tmp_path / "m.onnx")


def test_the_command(model, images, tmp_path):
    model.save(tmp_path / "m.safetensors")
    out = tmp_path / "m.onnx"
    done = command("export", tmp_path / "m.safetensors", "--onnx", out, "--classes", "all")
    assert done.exit_code == 0, done.output
    assert f"{len(model.class_table_)} classes; from features, class_table" in done.output
    assert "Checked with onnxruntime" in done.output
    assert f"ONNX file written to {out}." in done.output.replace("\n", "")
    assert gap(run(out, features=images)["scores"], model.decision_function(images, "all")) < 1e-5
    table = tmp_path / "new.csv"
    model.class_table_.select(["class 01"]).to_frame().rename(index={"class 01": "new"}).to_csv(
        table, index_label="class"
    )
    done = command(
        "export", tmp_path / "m.safetensors", "--onnx", out, "--no-check", "--opset", 13,
        "--classes", f"unseen,class 02,{table}",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert about(out)["classes"] == [*model.candidate_names("unseen").tolist(), "class 02", "new"]
    assert "Checked" not in done.output


def test_the_command_fails_in_a_sentence(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    out = tmp_path / "m.onnx"
    for arguments, sentence in (
        ([tmp_path / "none", "--onnx", out], "There is no model file"),
        ([tmp_path / "m.safetensors", "--onnx", out, "--opset", "3"], "opset must be"),
        ([tmp_path / "m.safetensors", "--onnx", out, "--classes", "ostrich"], "ostrich"),
        ([tmp_path / "m.safetensors", "--onnx", out, "--classes", "Unseen"], "did you mean"),
    ):
        done = command("export", *arguments)
        assert done.exit_code == 1
        assert sentence in done.output
        assert "Traceback" not in done.output
        assert not out.exists()
    assert command("export", tmp_path / "m.safetensors").exit_code == 2


def test_json_in_the_metadata_is_plain(file):
    text = open_session(file).get_modelmeta().custom_metadata_map["latem"]
    assert "NaN" not in text
    assert set(json.loads(text)) >= {"format", "model", "classes", "seen", "encoder", "versions"}
