"""Model files: complete, safe to open, never half-written."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers import read_meta, rewrite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors.numpy import save_file

import latem
from latem import FileFormatError, LatEm, make_latent_world
from latem.core import alone, storage
from latem.core.run_folder import RunFolder


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        for write in (storage.check_target, lambda path: storage.write_text(path, "text")):
            with pytest.raises(OSError, match="is a device, a pipe or the like"):
                write(tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_to_a_file_is_replaced_by_a_file(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    storage.write_text(tmp_path / "link", "new")
    assert (tmp_path / "old").read_text() == "old"
    assert (tmp_path / "link").read_text() == "new"


KILLED = """
import sys, time
from latem.core.storage import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="temporary files are locked on POSIX only")
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    target = tmp_path / "file [1]"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, target], stdout=subprocess.PIPE)
    try:
        assert writer.stdout.readline() == b"writing\n"
        storage.write_text(target, "whole")
        assert len(list(tmp_path.iterdir())) == 2  # the writer is alive
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    (tmp_path / ".file [1].keep.tmp").touch()  # not a name that is given to temporary files
    (tmp_path / ".other.abcd1234.tmp").touch()
    storage.write_text(target, "again")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        ".file [1].keep.tmp",
        ".other.abcd1234.tmp",
        target.name,
    ]
    assert target.read_text() == "again"


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
            storage.write_text(path, "of another writer")

    monkeypatch.setattr(storage, "save_file", save_twice)
    model.save(path)
    assert path.read_bytes() == others[0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_without_locks_only_old_left_overs_are_removed(tmp_path, monkeypatch):
    young, old = tmp_path / ".file.abcd1234.tmp", tmp_path / ".file.abcd5678.tmp"
    young.touch()
    old.touch()
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))

    def fail(*_):
        raise OSError("no locks available")

    if os.name == "posix":
        monkeypatch.setattr("fcntl.flock", fail)
    storage.write_text(tmp_path / "file", "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == [young.name, "file"]


def test_places_can_be_checked_before_long_work(tmp_path):
    storage.check_target(tmp_path / "new")
    with pytest.raises(IsADirectoryError, match="name a file"):
        storage.check_target(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        storage.check_target(tmp_path / "no" / "file")
    assert not any(tmp_path.iterdir())


def test_names_as_long_as_a_file_can_have(tmp_path):
    storage.write_text(tmp_path / ("x" * 250), "text")
    assert (tmp_path / ("x" * 250)).read_text() == "text"


def test_a_folder_appears_as_a_whole(tmp_path):
    with storage.atomic_folder(tmp_path / "new" / "set") as made:
        (made / "a").write_text("a")
        assert not (tmp_path / "new" / "set").exists()
    assert (tmp_path / "new" / "set" / "a").read_text() == "a"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["set"]
    if os.name == "posix":
        assert (tmp_path / "new" / "set").stat().st_mode & 0o777 == 0o777 & ~storage.UMASK


def test_a_folder_that_fails_does_not_appear(tmp_path):
    def fail():
        with storage.atomic_folder(tmp_path / "set") as made:
            (made / "a").write_text("a")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not any(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(tmp_path):
    folder = tmp_path / "set"

    def too_late():
        with storage.atomic_folder(folder):
            folder.mkdir()
            (folder / "theirs").touch()

    for _ in range(2):  # the second time it is there from the beginning
        with pytest.raises(FileExistsError, match="set exists already; name a new folder"):
            too_late()
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["set", "theirs"]


@pytest.mark.skipif(os.name != "posix", reason="folders are locked on POSIX only")
def test_folders_of_killed_writers_are_removed_and_those_of_others_stay(tmp_path):
    (tmp_path / ".set.abcd1234.tmp" / "embeddings").mkdir(parents=True)

    def two_at_once():
        with storage.atomic_folder(tmp_path / "set") as first:
            assert [path.name for path in tmp_path.iterdir()] == [first.name]
            with storage.atomic_folder(tmp_path / "set") as second:
                assert first.is_dir()
                (second / "a").touch()

    with pytest.raises(FileExistsError, match="set exists already"):
        two_at_once()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "set"]


def test_arrays(tmp_path):
    for array in (np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.zeros((0, 4))):
        storage.write_array(tmp_path / "a.npy", array)
        read = np.load(tmp_path / "a.npy", allow_pickle=False)
        assert read.dtype == array.dtype
        np.testing.assert_array_equal(read, array)
        np.save(tmp_path / "b.npy", array)
        assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_an_array_on_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def open_full(*_):
        return open("/dev/full", "wb")

    monkeypatch.setattr(storage, "open", open_full, raising=False)
    with pytest.raises(OSError, match=r"a\.npy cannot be written: No space left on device\.$"):
        storage.write_array(tmp_path / "a.npy", np.zeros(10_000))
    assert not any(tmp_path.iterdir())


@pytest.fixture
def read_only(tmp_path, monkeypatch):
    """The working folder, in which nothing can be made by who runs the test, be it root."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").write_text("old")
    tmp_path.chmod(0o555)
    root = os.name == "posix" and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        if os.access(".", os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            pytest.skip("folders cannot be made read-only here")
        yield tmp_path
    finally:
        if root:
            os.seteuid(0)
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    "write",
    [
        lambda path: storage.write_text(path, "new"),
        lambda path: storage.check_target(path),
        lambda path: storage.atomic_folder(path.with_name("new")).__enter__(),
        lambda path: storage.atomic_folder(path.with_name("new") / "deeper").__enter__(),
        lambda path: alone.only_one(".lock", "busy", target=path).__enter__(),
        lambda path: RunFolder(path.with_name("new")).__enter__(),
    ],
)
def test_a_read_only_folder_is_told_by_the_name_of_the_target(read_only, write):
    with pytest.raises(
        PermissionError, match=r"^(old|new|new/deeper) cannot be written: Permission denied\.$"
    ):
        write(Path("old"))
    assert [path.name for path in Path().iterdir()] == ["old"]
    assert Path("old").read_text() == "old"


def test_a_file_that_cannot_be_read_is_not_said_to_be_written(tmp_path):
    unreadable = PermissionError(13, "Permission denied", str(tmp_path / "input"))
    with pytest.raises(PermissionError) as told, storage.writing(tmp_path / "output"):
        raise unreadable
    assert told.value is unreadable


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
