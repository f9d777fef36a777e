"""Model files: complete, safe to open, never half-written."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from helpers import read_meta, rewrite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import save_file

import latem
from latem import FileFormatError, LatEm, make_latent_world
from latem.core import atomic, storage


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_images=10, random_state=0)


@pytest.fixture(scope="module")
def model(world):
    return LatEm(world.embeddings["att"], n_maps=3, n_epochs=4, random_state=0).fit(
        *world.training()
    )


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_everything_comes_back(world, model, path):
    again = latem.load(path)
    X, _ = world.testing()
    assert type(again) is LatEm
    for classes in (None, "all", "unseen"):
        expected = model.decision_function(X, classes)
        assert again.decision_function(X, classes).tobytes() == expected.tobytes()
    assert again.class_table_ == model.class_table_
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.history_ == model.history_
    assert again.get_params() == {**model.get_params(), "class_embeddings": again.class_table_}
    assert (again.n_iter_, again.seed_) == (model.n_iter_, model.seed_)
    again.save(path.with_name("again.safetensors"))
    assert path.read_bytes() == path.with_name("again.safetensors").read_bytes()


def test_a_loaded_model_can_go_on_learning(world, model, path):
    again = latem.load(path)
    X, y = world.training()
    again.partial_fit(X, y)
    assert again.n_iter_ == 5


def test_the_file_tells_what_it_is(path):
    _, meta = read_meta(path)
    assert meta["format"] == storage.FORMAT_VERSION
    assert meta["model"] == "LatEm"
    assert meta["params"]["n_maps"] == 3
    assert meta["versions"]["latem"] == latem.__version__
    assert len(meta["record"]["history"]["mean_loss"]) == 4


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b", "c"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([3, 1, 2]),
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([3.0, 1.0, 2.0]),
        np.array([True, False]),
    ],
)
def test_one_hot_models_with_labels_of_any_type(tmp_path, labels):
    y = labels[np.arange(30) % len(labels)]
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = LatEm(n_epochs=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    again = latem.load(tmp_path / "m.safetensors")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_feature_names_travel_along(world, tmp_path):
    import pandas as pd

    X, y = world.training()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(32)])
    LatEm(n_epochs=1, random_state=0).fit(frame, y).save(tmp_path / "m.safetensors")
    again = latem.load(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[frame.columns[::-1]])


def test_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        LatEm().save(tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


# -- refusing ---------------------------------------------------------------------------------


def test_a_newer_format_is_refused_with_a_sentence(path):
    rewrite(path, lambda tensors, meta: meta.update(format=99))
    with pytest.raises(FileFormatError, match=r"newer latem \(file format 99; .*upgrade latem"):
        latem.load(path)


def cast(tensors, name, kind):
    tensors[name] = tensors[name].astype(kind)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, m: m.update(format="1"), "not a format version"),
        (lambda t, m: m.pop("format"), "description cannot be read"),
        (lambda t, m: m.update(kind="checkpoint"), "holds a latem checkpoint, not a model"),
        (lambda t, m: m.update(model="os.system"), "a model called 'os.system'"),
        (lambda t, m: m.update(model=["LatEm"]), "a model called"),
        (lambda t, m: m.pop("params"), "lacks 'params'"),
        (lambda t, m: m["params"].update(n_maps=0), "'n_maps'"),
        (lambda t, m: m["params"].update(surprise=1), "surprise"),
        (lambda t, m: m["classes"]["names"].append("yeti"), "no rows for 'yeti'"),
        (lambda t, m: m["classes"].update(dtype="V8"), "class names of type"),
        (lambda t, m: m["classes"].update(dtype="<U4,(2,"), "class names of type"),
        (lambda t, m: m["classes"].update(dtype="i8,i8"), "class names of type"),
        (lambda t, m: m["classes"].update(dtype=["<U4"]), "class names of type"),
        (lambda t, m: m["classes"].update(dtype="<f1"), "damaged"),
        (lambda t, m: m["classes"].update(names="zebra"), "class names of type"),
        (lambda t, m: m["table"]["names"].pop(), "69 class names but 70 class vectors"),
        (lambda t, m: m["record"].pop("seed"), "lacks 'seed'"),
        (lambda t, m: m.update(scaling="l2"), "scaling"),
        (lambda t, m: t.pop("maps"), "lacks 'maps'"),
        (lambda t, m: t.update(maps=t["maps"][:, 1:].copy()), "maps of shape"),
        (lambda t, m: t.update(maps=t["maps"][0].copy()), "maps of shape"),
        (lambda t, m: t.update(maps=t["maps"] * np.float32("nan")), "not finite"),
        (lambda t, m: t.update(map_visits=t["map_visits"][1:].copy()), "map_visits of shape"),
        (lambda t, m: t.update({"scaling.shift": np.zeros(3)}), "scaling of shapes"),
        (lambda t, m: cast(t, "scaling.shift", np.int64), "scaling of types int64 and float64"),
        (lambda t, m: cast(t, "scaling.scale", np.float16), "scaling of types float64 and float16"),
        (lambda t, m: cast(t, "map_visits", np.float32), "map_visits of .* type float32"),
        (lambda t, m: cast(t, "map_violations", np.uint8), "map_violations of .* type uint8"),
    ],
)
def test_files_that_do_not_fit_together(path, change, message):
    rewrite(path, change)
    with pytest.raises(FileFormatError, match=message) as error:
        latem.load(path)
    assert path.name in str(error.value)


def test_a_promise_of_wide_names_takes_no_memory(path, model):
    rewrite(path, lambda tensors, meta: meta["classes"].update(dtype="<U300000000"))
    classes = latem.load(path).classes_
    assert classes.dtype == np.dtype("<U256")
    assert classes.tolist() == model.classes_.tolist()


def test_names_that_would_fill_the_memory_are_refused(path):
    rewrite(path, lambda t, m: m["classes"]["names"].__setitem__(0, "x" * 10_000_000))
    with pytest.raises(FileFormatError, match="has 10000000 characters"):
        latem.load(path)


def test_other_files(tmp_path, path):
    with pytest.raises(FileNotFoundError, match="no model file"):
        latem.load(tmp_path / "none.safetensors")
    save_file({"a": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(FileFormatError, match="not one that latem wrote"):
        latem.load(tmp_path / "other.safetensors")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FileFormatError, match="damaged or not a latem model"):
        latem.load(tmp_path / "text")


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_damaged_files_never_do_worse_than_a_clear_error(path, data):
    content = bytearray(path.read_bytes())
    cut = data.draw(st.integers(0, len(content)))
    target = path.with_name("damaged.safetensors")
    if data.draw(st.booleans()):
        content = content[:cut]
    else:
        header = data.draw(st.integers(0, min(4000, len(content) - 1)))
        content[header] = data.draw(st.integers(0, 255))
    target.write_bytes(bytes(content))
    with suppress(FileFormatError):  # or it loads, if the damage does not show
        latem.load(target)


# -- writing ----------------------------------------------------------------------------------


def test_a_failing_write_leaves_the_old_file(path, model, monkeypatch):
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_full_disk_is_an_os_error(path, model, monkeypatch):
    before = path.read_bytes()

    def fail(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(storage, "save_file", fail)
    with pytest.raises(OSError, match=r"model\.safetensors cannot be written: .*No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


KILLED_WHILE_SAVING = """
import os, signal, sys
from pathlib import Path
import numpy as np
from latem.core import storage
def save_file(arrays, path, metadata):  # safetensors writes a file of its own beside, and renames
    (Path(path).parent / ".tmpAbC123").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
storage.save_file = save_file
storage.write_file(sys.argv[1], "model", {"a": np.zeros(3)}, {})
"""


@pytest.mark.skipif(os.name != "posix", reason="temporary files are locked on POSIX only")
def test_what_a_killed_save_left_is_removed_by_the_next(path, model):
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_SAVING, path])
    assert killed.returncode == -signal.SIGKILL
    assert len(list(path.parent.rglob("*"))) > 1
    model.save(path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_two_saves_at_once_leave_each_other_alone(path, model, monkeypatch):
    save_file = storage.save_file
    others = []

    def save_twice(*arguments, **options):
        save_file(*arguments, **options)
        if not others:
            others.append(path.read_bytes())
            atomic.write_text(path, "of another writer")

    monkeypatch.setattr(storage, "save_file", save_twice)
    model.save(path)
    assert path.read_bytes() == others[0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_bad_places_to_write(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder"):
        model.save(tmp_path / "nowhere" / "m.safetensors")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        model.save(tmp_path)


def test_file_permissions_follow_the_umask(path):
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_labels_that_are_not_plain_data(tmp_path):
    model = LatEm(n_epochs=1, random_state=0)
    model.fit(np.eye(4), ["a", "b", "a", "b"])
    model.history_["mean_loss"] = [object()]
    with pytest.raises(TypeError, match="cannot be stored as plain data"):
        model.save(tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_description_that_no_reader_would_take_is_not_written(model, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "LARGEST_HEADER", 2000)
    with pytest.raises(ValueError, match="at most 1,000 can be stored; give classes"):
        model.save(tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_shapes_are_read_without_arrays(path):
    shapes, meta = storage.read_header(path, "model")
    tensors, whole = storage.read_file(path, "model")
    assert meta == whole
    assert {name: one.shape for name, one in shapes.items()} == {
        name: array.shape for name, array in tensors.items()
    }
    assert shapes["maps"].dtype == "F32"
    assert shapes["maps"].size == tensors["maps"].size


def test_files_of_countless_arrays_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    save_file({f"a{i}": np.zeros(1) for i in range(20)}, path, metadata={"latem": "{}"})
    with pytest.raises(FileFormatError, match="description cannot be read"):
        storage.read_header(path, "model")
    monkeypatch.setattr(storage, "MOST_ARRAYS", 19)
    for read in (storage.read_header, storage.read_file):
        with pytest.raises(
            FileFormatError, match="not a latem model file: 20 arrays, where at most 19"
        ):
            read(path, "model")


def test_headers_are_looked_at_before_they_are_parsed(tmp_path):
    head = b'{"a":' + b"[" * 10**5
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head)
    with pytest.raises(FileFormatError, match="its header holds lists in lists, more than 100"):
        storage.read_header(path, "model")
