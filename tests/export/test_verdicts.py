"""Verdicts in a graph are those of the library."""

from dataclasses import replace

import numpy as np
import pytest
from export_runs import about, gap, newest_opset, run
from helpers import SHARED
from model_suite import make

import latem
from latem import ClassEmbeddings, make_latent_world
from latem.export import export_onnx
from latem.metrics.open_set import Outsiders
from latem.models.answers import VERDICTS

NEAR = 1e-5
LONG = ("LatEm", "GFZSL", "Committee", "HeldOutSearch")  # to calibrate
KINDS = ("ESZSL", "CCA", "LateFusion", *(pytest.param(k, marks=pytest.mark.slow) for k in LONG))


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=16, n_images=8, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def images(world):
    """Of seen and unseen classes, some in between, and noise."""
    X = np.concatenate([np.asarray(part) for part, _ in (world.training(), world.testing())])
    rng = np.random.default_rng(1)
    mixed = (X[rng.permutation(len(X))] + X) / 2
    noise = rng.normal(size=(20, X.shape[1])) * X.std()
    return np.concatenate([X, mixed, noise]).astype(np.float32)


def calibrated(kind, world):
    model = make(kind, world.embeddings["att"], "float32").fit(*world.training())
    X, y = world.training()
    latem.calibrate_answers(model, X, y, cv=3)
    return model


@pytest.fixture(scope="module")
def model(world):
    return calibrated("ESZSL", world)


def judged(model, images, classes, **how):
    """Verdicts as numbers, and strangeness."""
    answers = model.answer(images, classes, **how)
    verdicts = np.array([VERDICTS.index(one.verdict) for one in answers])
    return verdicts, np.array([one.strangeness for one in answers])


def compare(found, model, images, classes, **how):
    """The graph's verdicts are the model's wherever rounding does not decide."""
    verdicts, strange = judged(model, images, classes, **how)
    np.testing.assert_allclose(found["strangeness"], strange, atol=NEAR)
    rate = how.get("false_accept_rate", model.acceptance_.false_accept_rate)
    limit = max(rate, model.usual_strangeness(classes, 0.92))
    close = np.abs(strange[:, None] - [rate, limit]).min(axis=1) < 2 * NEAR
    close &= (strange > 0.001) & (strange < 1)
    close |= np.abs(found["probabilities"].max(axis=1) - 0.5) < 2 * NEAR
    assert close.mean() < 0.1
    np.testing.assert_array_equal(found["verdict"][~close], verdicts[~close])
    assert (found["verdict"].dtype, found["strangeness"].dtype) == (np.int64, np.float32)
    return verdicts


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_are_the_model_s(kind, world, images, tmp_path):
    model = calibrated(kind, world)
    for classes, opset in (("unseen", 13), ("seen", 17), ("all", newest_opset())):
        export_onnx(model, tmp_path / "m.onnx", classes=classes, opset=opset)
        compare(run(tmp_path / "m.onnx", features=images), model, images, classes)


def test_all_three_verdicts_are_there(model, images, tmp_path):
    export_onnx(model, tmp_path / "m.onnx")
    verdicts = compare(run(tmp_path / "m.onnx", features=images), model, images, "unseen")
    assert set(verdicts) == {0, 1, 2}
    assert about(tmp_path / "m.onnx")["verdicts"] == list(VERDICTS)
    assert about(tmp_path / "m.onnx")["learned"] == model.classes_.tolist()


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.3, 1.0])
def test_other_rates_of_false_accepts(model, images, tmp_path, rate):
    export_onnx(model, tmp_path / "m.onnx")
    found = run(tmp_path / "m.onnx", features=images, false_accept_rate=np.float32([rate]))
    verdicts = compare(found, model, images, "unseen", false_accept_rate=rate)
    assert (rate == 1) == (not verdicts.any())


def test_other_classes_and_their_rivals(model, images, tmp_path):
    """From one candidate, fewer than were ever measured, to more than there were classes."""
    export_onnx(model, tmp_path / "m.onnx")
    names = model.class_table_.names.tolist()
    rng = np.random.default_rng(0)
    new = ClassEmbeddings([f"new {i}" for i in range(60)], rng.random((60, 8)).astype(np.float32))
    sizes = sorted({1, 2, 3, len(names), *model.acceptance_.rivalled.sizes.astype(int).tolist()})
    for n in (*sizes, 60):
        chosen = names[::-1][:n] if n <= len(names) else new
        taken = model.candidate_names(chosen)
        table = (model.class_table_.select(chosen) if n <= len(names) else new).vectors
        seen = np.isin(taken, model.classes_)
        mixed = seen.any() and not seen.all()
        found = run(
            tmp_path / "m.onnx",
            features=images,
            class_table=table.astype(np.float32),
            seen=seen,
            seen_penalty=np.float32([model.seen_penalty_ if mixed else 0]),
            rivals=~np.isin(model.classes_, taken),
        )
        assert gap(found["scores"], model.class_scores(images, chosen)) < NEAR
        compare(found, model, images, chosen)


def test_one_number_of_candidates_alone_was_measured(model, images, tmp_path):
    known = model.acceptance_
    first = Outsiders(*(part[:1] for part in (
        known.rivalled.sizes, known.rivalled.thresholds, known.rivalled.coverage)))  # fmt: skip
    model.save(tmp_path / "m.safetensors")
    small = latem.load(tmp_path / "m.safetensors")
    small.acceptance_ = replace(known, rivalled=first)
    export_onnx(small, tmp_path / "m.onnx")
    compare(run(tmp_path / "m.onnx", features=images), small, images, "unseen")


def test_fixed_classes(model, images, tmp_path):
    export_onnx(model, tmp_path / "m.onnx", open_classes=False)
    compare(run(tmp_path / "m.onnx", features=images), model, images, "unseen")


def test_a_model_that_cannot_tell_has_no_verdicts(world, tmp_path):
    plain = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    written = export_onnx(plain, tmp_path / "m.onnx")
    assert written.outputs == ("scores", "probabilities", "best")
    assert "verdicts" not in about(tmp_path / "m.onnx")


def test_a_model_without_a_temperature_doubts_no_probability(model, images, tmp_path):
    model.save(tmp_path / "m.safetensors")
    bare = latem.load(tmp_path / "m.safetensors")
    del bare.temperature_
    export_onnx(bare, tmp_path / "m.onnx")
    verdicts = compare(run(tmp_path / "m.onnx", features=images), bare, images, "unseen")
    assert (verdicts != judged(model, images, "unseen")[0]).any()


def test_verdicts_on_real_birds(tmp_path):
    folder = SHARED / "cub"
    if not (folder / "features.npy").is_file():
        pytest.skip(f"needs {folder}")
    cub = latem.read_folder(folder)
    X, y = (np.asarray(part) for part in cub.training())
    rows = np.sort(np.random.default_rng(0).choice(len(X), 1500, replace=False))
    model = latem.ESZSL(cub.embeddings["att"], gamma=1e3).fit(X[rows], y[rows])
    latem.calibrate_answers(model, X[rows], y[rows], cv=3)
    unseen = np.asarray(cub.testing()[0])[::60].astype(np.float32)
    both = np.concatenate([unseen, X[::200].astype(np.float32)])
    for classes in ("unseen", "all"):
        export_onnx(model, tmp_path / "m.onnx", classes=classes)
        found = run(tmp_path / "m.onnx", features=both)
        compare(found, model, both, classes)
