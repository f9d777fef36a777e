"""An interrupted training continues to identical bytes, even after SIGKILL."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from helpers import rewrite

import latem
from latem import FileFormatError, LatEm, make_latent_world


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


def model(world, **params):
    settings = {"n_maps": 6, "prune_below": 0.1, "n_epochs": 12, "random_state": 0, **params}
    return LatEm(world.embeddings["att"], **settings)


class Interrupted(Exception):
    pass


def interrupt_after(epoch):
    def callback(info):
        if info.epoch == epoch:
            raise Interrupted

    return callback


@pytest.mark.parametrize("form", ["class", "embedding"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("stop", [1, 3, 7, 11])
def test_continues_to_identical_bytes(world, tmp_path, monkeypatch, form, dtype, stop):
    monkeypatch.setattr("latem.models.latem.pair_form", lambda *_: form)
    X, y = world.training()
    checkpoint = tmp_path / "training.safetensors"
    model(world, dtype=dtype).fit(X, y).save(tmp_path / "whole")
    with pytest.raises(Interrupted):
        model(world, dtype=dtype).fit(
            X, y, checkpoint=checkpoint, checkpoint_every=2, callback=interrupt_after(stop)
        )
    assert checkpoint.exists() == (stop > 2)
    epochs = []
    again = model(world, dtype=dtype)
    again.fit(X, y, checkpoint=checkpoint, callback=lambda info: epochs.append(info.epoch))
    assert epochs[0] == stop - (stop - 1) % 2
    again.save(tmp_path / "continued")
    assert (tmp_path / "continued").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, m: m["history"].pop("violation_rate"), "lacks 'violation_rate'"),
        (lambda t, m: m["history"].update(mean_loss=[0.5]), "history of mean_loss .* 2 epochs"),
        (lambda t, m: m["history"].update(n_maps=None), "history of n_maps"),
        (lambda t, m: m.update(history=[]), "record cannot be"),
        (lambda t, m: m.update(epoch="2"), "record cannot be"),
        (lambda t, m: m.update(seed=None), "record cannot be"),
        (lambda t, m: t.update(visits=t["visits"].astype(np.float32)), "counts are not numbers"),
    ],
)
def test_damaged_records_are_refused(world, tmp_path, change, message):
    X, y = world.training()
    checkpoint = tmp_path / "training.safetensors"
    with pytest.raises(Interrupted):
        model(world, random_state=None).fit(
            X, y, checkpoint=checkpoint, checkpoint_every=2, callback=interrupt_after(3)
        )
    rewrite(checkpoint, change)
    with pytest.raises(FileFormatError, match=message):
        model(world, random_state=None).fit(X, y, checkpoint=checkpoint)


SCRIPT = textwrap.dedent(
    """
    import sys, time
    from latem import LatEm, make_latent_world

    folder, slow = sys.argv[1], sys.argv[2] == "slow"
    world = make_latent_world(n_images=10, random_state=0)
    X, y = world.training()

    def callback(info):
        print(info.epoch, flush=True)
        if slow:
            time.sleep(0.05)

    model = LatEm(world.embeddings["att"], n_maps=4, n_epochs=60, random_state=0)
    model.fit(X, y, callback=callback, checkpoint=folder + "/training", checkpoint_every=3)
    model.save(folder + "/model")
    """
)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
def test_killed_at_any_moment_it_continues_to_identical_bytes(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)

    def start(folder, pace):
        folder.mkdir(exist_ok=True)
        command = [sys.executable, script, folder, pace]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole = start(tmp_path / "whole", "fast")
    assert whole.wait() == 0
    whole.stdout.close()
    rng = np.random.default_rng(0)
    kills = 0
    first_epochs = []
    while True:
        process = start(tmp_path / "killed", "slow" if kills < 3 else "fast")
        first = process.stdout.readline()
        if kills < 3:
            first_epochs.append(int(first))
            for _ in range(7):
                process.stdout.readline()
            time.sleep(rng.uniform(0, 0.1))
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            kills += 1
            continue
        assert process.wait() == 0
        process.stdout.close()
        break
    assert first_epochs[0] == 1
    assert 1 < first_epochs[1] < first_epochs[2]
    results = [(tmp_path / name / "model").read_bytes() for name in ("whole", "killed")]
    assert results[0] == results[1]
    leftovers = [p.name for p in (tmp_path / "killed").iterdir() if not p.name.endswith(".tmp")]
    assert sorted(leftovers) == ["model", "training"]


def test_more_epochs_continue_a_finished_training(world, tmp_path):
    X, y = world.training()
    checkpoint = tmp_path / "training"
    model(world, n_epochs=5).fit(X, y, checkpoint=checkpoint)
    longer = model(world).fit(X, y, checkpoint=checkpoint)
    assert longer.maps_.tobytes() == model(world).fit(X, y).maps_.tobytes()
    with pytest.raises(
        ValueError, match="already been trained for 12 epochs, more than n_epochs=5"
    ):
        model(world, n_epochs=5).fit(X, y, checkpoint=checkpoint)


def test_without_a_seed_the_checkpoints_seed_is_used(world, tmp_path):
    X, y = world.training()
    checkpoint = tmp_path / "training"
    with pytest.raises(Interrupted):
        model(world, random_state=None).fit(
            X, y, checkpoint=checkpoint, checkpoint_every=2, callback=interrupt_after(5)
        )
    one = model(world, random_state=None).fit(X, y, checkpoint=checkpoint)
    again = model(world, random_state=None).fit(X, y, checkpoint=checkpoint)
    assert one.seed_ == again.seed_
    assert one.maps_.tobytes() == again.maps_.tobytes()


@pytest.mark.parametrize(
    "change",
    [
        {"learning_rate": 0.2},
        {"n_maps": 5},
        {"random_state": 1},
        {"feature_scaling": "l2"},
        {"margin": 0.5},
    ],
)
def test_another_training_is_refused(world, tmp_path, change):
    X, y = world.training()
    model(world, n_epochs=2).fit(X, y, checkpoint=tmp_path / "training")
    with pytest.raises(ValueError, match="belongs to a training with other data, parameters"):
        model(world, **change).fit(X, y, checkpoint=tmp_path / "training")


def test_other_data_is_refused(world, tmp_path):
    X, y = world.training()
    model(world, n_epochs=2).fit(X, y, checkpoint=tmp_path / "training")
    other = X.copy()
    other[5, 5] += 1
    for images, labels in ((other, y), (X, y[::-1]), (X[1:], y[1:])):
        with pytest.raises(ValueError, match="other data"):
            model(world).fit(images, labels, checkpoint=tmp_path / "training")


def test_bad_checkpoints(world, tmp_path):
    X, y = world.training()
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileFormatError, match="not a latem checkpoint"):
        model(world).fit(X, y, checkpoint=tmp_path / "text")
    with pytest.raises(FileNotFoundError, match="no folder"):
        model(world).fit(X, y, checkpoint=tmp_path / "nowhere" / "training")
    with pytest.raises(ValueError, match="checkpoint_every must be a whole number from 1"):
        model(world).fit(X, y, checkpoint=tmp_path / "new", checkpoint_every=0)
    fitted = model(world, n_epochs=1, warm_start=True).fit(X, y, checkpoint=tmp_path / "training")
    with pytest.raises(ValueError, match="without warm_start"):
        fitted.fit(X, y, checkpoint=tmp_path / "training")
    fitted.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match="holds a latem model, not a checkpoint"):
        model(world).fit(X, y, checkpoint=tmp_path / "model")
    with pytest.raises(FileFormatError, match="holds a latem checkpoint, not a model"):
        latem.load(tmp_path / "training")


def test_a_stopped_training_stays_stopped(world, tmp_path):
    X, y = world.training()
    for _ in range(3):
        again = model(world).fit(
            X, y, checkpoint=tmp_path / "training", callback=lambda info: info.epoch >= 4
        )
        assert again.n_iter_ == 4


def test_equal_parameters_of_another_type_are_the_same_training(world, tmp_path):
    X, y = world.training()
    model(world, n_epochs=2, margin=1).fit(X, y, checkpoint=tmp_path / "training")
    model(world, n_epochs=3, margin=1.0).fit(X, y, checkpoint=tmp_path / "training")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model(world).fit(X, y, checkpoint=tmp_path)


def test_a_checkpoint_has_one_training_at_a_time(world, tmp_path):
    X, y = world.training()
    path = tmp_path / "training"
    refused = []

    def try_too(info):
        with pytest.raises(BlockingIOError, match=r"writes to the checkpoint .*training; wait"):
            model(world, margin=1.0).fit(X, y, checkpoint=path)
        refused.append(info.epoch)

    first = model(world, n_epochs=2).fit(X, y, checkpoint=path, callback=try_too)
    assert refused == [1, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["training"]
    np.testing.assert_array_equal(first.maps_, model(world, n_epochs=2).fit(X, y).maps_)


@pytest.mark.parametrize("params", [{"n_rivals": 3}, {"average": True}])
@pytest.mark.parametrize("stop", [2, 3, 5])
def test_continues_after_pruning_with_all_scores_at_hand(tmp_path, params, stop):
    """A pruned training has fewer maps than its model begins with."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 8)), np.arange(120) % 6
    table = (range(6), rng.normal(size=(6, 5)))
    settings = {"n_maps": 16, "prune_below": 0.05, "prune_every": 1, "n_epochs": 10, **params}
    whole = LatEm(table, **settings, random_state=0).fit(X, y)
    assert len(whole.maps_) < 16
    again, path = LatEm(table, **settings, random_state=0), tmp_path / "c"
    with pytest.raises(Interrupted):
        again.fit(X, y, checkpoint=path, checkpoint_every=1, callback=interrupt_after(stop))
    again.fit(X, y, checkpoint=path)
    np.testing.assert_array_equal(again.maps_, whole.maps_)
