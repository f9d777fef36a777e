"""`read_info`: everything a model file says about itself, from its header."""

import json
import random
import struct
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from helpers import REPOSITORY, read_meta, rewrite
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_suite import EVERY, make
from safetensors.numpy import save_file

import latem
from latem import FileFormatError, make_latent_world, read_info
from latem.core import plain_json, storage
from latem.models import info as room
from latem.models.measured import Measured
from latem.report.model_card import info_lines, model_card

FILES = REPOSITORY / "tests" / "data" / "files"
SPEC = {"name": "efficientnet-lite0", "n_features": 32}


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=12, n_images=6, random_state=0)


@pytest.fixture(scope="module")
def table(world):
    att = world.embeddings["att"]
    return latem.ClassEmbeddings(
        att.names, att.vectors - att.vectors.min(), name="att", columns=list("abcdefgh")
    )


@pytest.fixture
def path(world, table, tmp_path):
    model = latem.LatEm(table, n_maps=2, n_epochs=1, random_state=0).fit(*world.training())
    model.save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize("kind", EVERY)
def test_every_model_tells_what_it_is(kind, world, table, tmp_path):
    model = make(kind, table, "float32")
    model.encoder_ = SPEC
    model.fit(*world.training())
    model.temperature_, model.seen_penalty_ = 0.5, 0.25
    model.save(tmp_path / "m")
    found = read_info(tmp_path / "m")
    assert found.model == kind
    assert list(found.seen) == model.classes_.tolist()
    assert list(found.known) == model.candidate_names("all").tolist()
    assert list(found.unseen) == model.candidate_names("unseen").tolist()
    assert found.n_features == model.n_features_in_
    assert found.encoder == SPEC
    assert found.training_digest == model.training_digest_ is not None
    assert (found.temperature, found.seen_penalty) == (0.5, 0.25)
    assert (found.false_accept_rate, found.rejection_threshold) == (None, None)
    assert found.n_bytes == (tmp_path / "m").stat().st_size
    assert found.versions == storage.library_versions()
    tensors, _ = read_meta(tmp_path / "m")
    assert {name: one.shape for name, one in found.tensors.items()} == {
        name: array.shape for name, array in tensors.items()
    }
    assert 0 < found.n_numbers < sum(array.size for array in tensors.values())
    inner = model
    while hasattr(inner, "best_estimator_"):
        inner = inner.best_estimator_
    assert found.chosen_model == (None if inner is model else type(inner).__name__)
    tables = [table] if kind != "LateFusion" else [table, table]
    assert [(one.name, one.n_classes, one.columns) for one in found.tables] == [
        (one.name, len(one), one.columns) for one in tables
    ]
    members = getattr(inner, "member_names_", None) or [n for n, _ in getattr(inner, "members", [])]
    assert [member.name for member in found.members] == members
    models = getattr(inner, "models_", [])
    assert [member.model for member in found.members] == [type(one).__name__ for one in models]
    for name, value in found.parameters.items():
        given = inner.get_params(deep=False)[name]
        assert name in ("class_embeddings", "weights") or value == given
    json.dumps(found.to_dict(), allow_nan=False)


def test_learned_numbers_are_counted(path):
    found = read_info(path)
    n_maps, n_features, n_dimensions = 2, 32, 8
    assert found.n_numbers == n_maps * n_features * n_dimensions + 2 * n_maps  # and visits


def test_a_committee_and_fusions_of_fusions(world, table, tmp_path):
    other = latem.ClassEmbeddings(table.names[1:], table.vectors[1:, :3] + 1, name="other")
    inner = latem.LateFusion([("c", latem.CCA(other)), ("s", make("HeldOutSearch", table))])
    X, y = world.training()
    kept = np.asarray(y) != table.names[0]
    model = latem.LateFusion([("i", inner), ("x", make("Committee", table))])
    model.fit(np.asarray(X)[kept], np.asarray(y)[kept]).save(tmp_path / "m")
    found = read_info(tmp_path / "m")
    assert [one.name for one in found.tables] == ["other", "att", "att"]
    assert table.names[0] not in found.known  # one of the tables lacks it
    assert list(found.known) == model.candidate_names("all").tolist()
    assert [(one.name, one.model) for one in found.members] == [
        ("i", "LateFusion"), ("x", "Committee")
    ]  # fmt: skip
    assert found.training_digest == model.training_digest_


def test_what_a_search_chose(world, table, tmp_path):
    search = make("HeldOutSearch", table).fit(*world.training())
    search.save(tmp_path / "m")
    found = read_info(tmp_path / "m").measured
    assert found.held_out_score == search.best_score_
    assert found.chosen == search.best_params_
    chosen = make("ESZSLCV", table).fit(*world.training())
    chosen.save(tmp_path / "m")
    found = read_info(tmp_path / "m").measured
    assert found.chosen == {"gamma": chosen.gamma_, "lam": chosen.lam_}
    assert found.held_out_score is None


def test_only_the_header_is_read(path):
    """Of a file with gigabytes of nothing behind it, and of one whose arrays are nonsense."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    end = max(one["data_offsets"][1] for name, one in header.items() if name != "__metadata__")
    n = 2**26
    header["maps"] = {"dtype": "F32", "shape": [n, 1, 8], "data_offsets": [end, end + n * 32]}
    header = {k: v for k, v in header.items() if k != "maps"} | {"maps": header["maps"]}
    old = json.loads(data[8 : 8 + length])["maps"]["data_offsets"]
    header["filler"] = {"dtype": "U8", "shape": [old[1] - old[0]], "data_offsets": old}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end + n * 32)  # sparse: takes no room
    found = read_info(path)
    assert found.tensors["maps"] == storage.TensorShape("F32", (n, 1, 8))
    assert found.n_numbers > 8 * n
    assert found.n_bytes > 2**31


def test_older_files_tell_what_they_know():
    for name in ("latem_cv_tuned", "late_fusion", "latem_pruned_calibrated"):
        found = read_info(FILES / f"{name}.safetensors")
        model = latem.load(FILES / f"{name}.safetensors")
        assert list(found.known) == model.candidate_names("all").tolist()
        assert found.training_digest is None
        assert found.n_training_images is None
        assert found.temperature == getattr(model, "temperature_", None)
    assert found.encoder == {"name": "efficientnet-lite0"}
    assert found.measured is None


def test_a_file_of_before_digests_were_written(path, world):
    rewrite(path, lambda tensors, meta: meta.pop("training_digest"))
    found = read_info(path)
    assert found.training_digest is None
    assert found.n_training_images == len(world.training()[1])
    assert latem.load(path).training_digest_ is not None


def test_what_training_by_latem_adds(world, tmp_path):
    model = latem.train(world, kind="ESZSL", false_accept_rate=0.1)
    model.save(tmp_path / "m")
    found = read_info(tmp_path / "m")
    assert found.measured == model.measured_
    assert found.false_accept_rate == 0.1
    assert found.temperature == model.temperature_


# -- what is refused ---------------------------------------------------------------------------

BAD = {
    "no file": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "nothing": lambda path: path.write_bytes(b""),
    "a text": lambda path: path.write_text("a long enough text that is no model at all"),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "cut in the header": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "a huge header": lambda path: path.write_bytes(
        struct.pack("<Q", storage.LARGEST_HEADER + 1) + path.read_bytes()[8:]
    ),
    "the header of a monster": lambda path: path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:]),
    "a newer format": lambda path: rewrite(path, lambda t, m: m.update(format=99)),
    "no format": lambda path: rewrite(path, lambda t, m: m.update(format="x")),
    "another kind": lambda path: rewrite(path, lambda t, m: m.update(kind="checkpoint")),
    "an unknown model": lambda path: rewrite(path, lambda t, m: m.update(model="Nonsense")),
    "a model of no name": lambda path: rewrite(path, lambda t, m: m.update(model=[1])),
    "no model": lambda path: rewrite(path, lambda t, m: m.pop("model")),
    "no classes": lambda path: rewrite(path, lambda t, m: m.pop("classes")),
    "no table": lambda path: rewrite(path, lambda t, m: m.pop("table")),
    "no vectors": lambda path: rewrite(path, lambda t, m: t.pop("table.vectors")),
    "no scaling": lambda path: rewrite(path, lambda t, m: t.pop("scaling.shift")),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_files_are_refused_as_by_load(how, path):
    BAD[how](path)
    told = []
    for read in (read_info, latem.load):
        with pytest.raises((OSError, FileFormatError)) as caught:
            read(path)
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]
    assert str(path) in told[0][1]


ODD = {
    "params": ["params", 3],
    "names": ["classes", {"dtype": "<U8", "names": "abc"}],
    "nested names": ["classes", {"dtype": "O", "names": [["a"]]}],
    "calibration": ["calibration", {"temperature": "warm"}],
    "calibration that is no number": ["calibration", {"temperature": float("nan")}],
    "acceptance": ["acceptance", [1]],
    "encoder": ["encoder", "resnet"],
    "digest": ["training_digest", 7],
    "measured": ["measured", {"unseen_score": 3.0}],
    "measured text": ["measured", {"dataset": 3}],
    "measured count": ["measured", {"n_unseen": -1}],
    "measured list": ["measured", []],
    "versions": ["versions", "new"],
    "record": ["record", 5],
    "members": ["record", {"members": [{"name": "a"}]}],
    "table": ["table", {"name": "a", "names": ["x"], "columns": None}],
    "table name": ["table", "att"],
}


@pytest.mark.parametrize("how", ODD)
def test_descriptions_that_cannot_be(how, path):
    key, value = ODD[how]
    rewrite(path, lambda tensors, meta: meta.update({key: value}))
    with pytest.raises(FileFormatError, match="is damaged: "):
        read_info(path)


def test_columns_that_are_too_few(path):
    rewrite(path, lambda tensors, meta: meta["table"].update(columns=["a"]))
    with pytest.raises(FileFormatError, match="1 names of columns for 8 columns"):
        read_info(path)


def test_a_fusion_of_nobody(world, table, tmp_path):
    make("LateFusion", table).fit(*world.training()).save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda tensors, meta: meta.update(members=[]))
    for read in (read_info, latem.load):
        with pytest.raises(FileFormatError, match="is damaged: "):
            read(tmp_path / "m")


@pytest.mark.parametrize(("n", "deepest"), [(12, room._DEEPEST), (100, plain_json.DEEPEST)])
def test_models_inside_of_models_have_an_end(path, n, deepest):
    def nest(tensors, meta):
        inner = dict(meta)
        for _ in range(n):
            inner = {"model": "HeldOutSearch", "inner": inner, "params": {}}
            inner = {"model": "LateFusion", "members": [{"name": "a", "content": inner}]}
        meta.clear()
        meta.update({**inner, "params": {}, "format": 1, "kind": "model"})

    rewrite(path, nest)
    with pytest.raises(FileFormatError, match=f"more than {deepest} deep"):
        read_info(path)


@pytest.fixture(scope="module")
def files(world, table, tmp_path_factory):
    """A model, a committee, a fusion and a search, each in a file."""
    folder = tmp_path_factory.mktemp("files")
    for kind in ("LatEm", "Committee", "LateFusion", "HeldOutSearch"):
        make(kind, table).fit(*world.training()).save(folder / kind)
    return sorted(folder.iterdir())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=4,
)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10**9), value=JSON, gone=st.booleans())
def test_whatever_a_description_holds_there_is_a_clear_error(files, tmp_path, seed, value, gone):
    rng = random.Random(seed)
    tensors, meta = read_meta(rng.choice(files))
    place = meta = json.loads(json.dumps(meta))
    for _ in range(rng.randrange(7)):  # some way down
        inner = place.values() if isinstance(place, dict) else place
        inner = [part for part in inner if isinstance(part, dict | list) and part]
        if not inner:
            break
        place = rng.choice(inner)
    key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
    if gone:
        del place[key]
    else:
        place[key] = value
    save_file(tensors, tmp_path / "m", metadata={"latem": json.dumps(meta)})
    with suppress(FileFormatError):  # or it does not matter
        found = read_info(tmp_path / "m")
        info_lines(found)
        model_card(found)
        json.dumps(found.to_dict())


def test_shown_in_a_line(path):
    shown = repr(read_info(path))
    assert str(read_info(path)) == shown
    assert "LatEm, 12 seen of 22 known classes, 32 features" in shown
    assert shown.endswith(" kB>")
    assert len(shown) < 200


def test_shown_with_its_accuracy_and_what_was_chosen(path):
    found = replace(read_info(path), path="m", model="LatEmCV", chosen_model="LatEm")
    scores = Measured(held_out_score=0.5, unseen_score=0.25, n_unseen=10)
    shown = repr(replace(found, measured=scores))
    assert shown.startswith("<ModelInfo of m: LatEmCV (chose LatEm), ")
    assert shown.endswith(" 25.0% right on 10 unseen classes>")
    shown = repr(replace(found, measured=Measured(held_out_score=0.5)))
    assert shown.endswith(" 50.0% right on held-out classes>")


def test_a_table_is_shown_without_its_columns(path):
    (table,) = read_info(path).tables
    assert repr(table) == "TableInfo(name='att', n_classes=22, n_columns=8)"
