"""Naming rows of features in files: the answers of arrays in memory, resumed, in bounded memory."""

import json
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import command, left_over

import latem
from latem.core.threads import resolve_threads
from latem.datasets import make_latent_world, write_folder
from latem.models.answering import Asked
from latem.models.scoring import block_rows
from latem.workflows import bulk_features
from latem.workflows.bulk_features import (
    ColumnJournal,
    chunk_rows,
    name_features,
    name_features_in_bulk,
)

N_ROWS = 5000


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A calibrated model, and the same rows as `.npy`, dataset folder and Parquet files."""
    folder = tmp_path_factory.mktemp("features")
    world = make_latent_world(n_seen=20, n_unseen=6, n_images=10, n_features=32, random_state=0)
    X, y = world.training()
    model = latem.ESZSL(world.embeddings["att"]).fit(X, y)
    latem.calibrate_answers(model, X, y)
    model.save(folder / "model")
    X = np.resize(world.features, (N_ROWS, 32)).astype(np.float32)
    np.save(folder / "rows.npy", X)
    write_folder(world, folder / "set")
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(32)])
    frame["key"] = [f'"{i}", a row' for i in range(N_ROWS)]
    frame["list"] = list(X)
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        kept = frame.iloc[part]
        kept.drop(columns="list").to_parquet(folder / f"parts/{i}.parquet", row_group_size=300)
        kept[["key", "list"]].to_parquet(folder / f"list {i}.parquet")
    return folder


@pytest.fixture(scope="module")
def model(place):
    return latem.load(place / "model")


@pytest.fixture(scope="module")
def frame(model, place):
    """What the model answers to the rows in memory."""
    return model.answer(np.load(place / "rows.npy")).to_frame()


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of 512 rows: ten of them."""
    monkeypatch.setattr(bulk_features, "CHUNK_BYTES", 512 * 32 * 4)


def as_csv(frame, names):
    found = frame.assign(picture=np.repeat(names, 5))
    return found.to_csv(index=False, lineterminator="\n")


def stopped(model, source, out, after, **options):
    """A run that ends once so many rows are done."""

    class Stop(Exception):
        pass

    def progress(done, total):
        if done >= after:
            raise Stop

    with pytest.raises(Stop):
        name_features_in_bulk(model, source, out, progress=progress, **options)


@pytest.mark.usefixtures("short_chunks")
def test_files_have_the_answers_of_arrays_in_memory(model, place, frame, tmp_path):
    out = tmp_path / "a.csv"
    bulk = name_features_in_bulk(model, place / "rows.npy", out)
    assert (bulk.n_pictures, bulk.n_unreadable, bulk.n_resumed) == (N_ROWS, 0, 0)
    assert bulk.n_none == (frame["verdict"] == "none of these").sum() // 5
    assert out.read_text() == as_csv(frame, [str(i) for i in range(N_ROWS)])
    name_features_in_bulk(model, place / "rows.npy", tmp_path / "a.jsonl")
    told = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    wanted = model.answer(np.load(place / "rows.npy")).to_dicts()
    assert told == [{**one, "picture": str(i)} for i, one in enumerate(wanted)]
    name_features_in_bulk(model, place / "rows.npy", tmp_path / "a.parquet")
    found = pd.read_parquet(tmp_path / "a.parquet")
    assert found.columns.tolist() == frame.columns.tolist()
    for column in ("place", "class", "probability", "score", "verdict", "strangeness"):
        np.testing.assert_array_equal(found[column].to_numpy(), frame[column].to_numpy())
    assert found["error"].isna().all()
    assert left_over(tmp_path) == []


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("source", ["parts", "parts/*.parquet", "list *.parquet"])
def test_parquet_files_are_read_one_after_the_other(model, place, frame, tmp_path, source):
    out = tmp_path / "a.csv"
    name_features_in_bulk(model, place / source, out, id_column="key")
    assert out.read_text() == as_csv(frame, [f'"{i}", a row' for i in range(N_ROWS)])


def test_a_dataset_folder_names_its_images(model, place):
    answers = name_features(model, place / "set")
    dataset = latem.read_folder(place / "set")
    assert [one.picture for one in answers] == dataset.images.tolist()
    np.testing.assert_array_equal(answers.names, model.answer(dataset.features).names)


def test_half_precision_and_columns_that_lie_together(model, place, tmp_path):
    X = np.load(place / "rows.npy")
    for name, array in (
        ("half", X.astype(np.float16)),
        ("double", X.astype(np.float64)),
        ("columns", np.asfortranarray(X)),
        ("whole", np.round(100 * X).astype(np.int32)),
    ):
        np.save(tmp_path / f"{name}.npy", array)
        found = name_features(model, tmp_path / f"{name}.npy")
        wanted = model.answer(array)
        assert [one.scores for one in found] == [one.scores for one in wanted]


def test_a_model_that_knows_nothing_of_its_answers(place, tmp_path):
    dataset = latem.read_folder(place / "set")
    model = latem.ESZSL(dataset.embeddings["att"]).fit(*dataset.training())
    name_features_in_bulk(model, place / "rows.npy", tmp_path / "a.parquet", top=2)
    found = pd.read_parquet(tmp_path / "a.parquet")
    assert found[["probability", "verdict", "strangeness"]].isna().all(axis=None)
    X = np.load(place / "rows.npy")
    names = model.top_k(X, 2, "unseen")
    np.testing.assert_array_equal(found["class"].to_numpy().reshape(-1, 2), names)


def test_columns_are_found_by_the_names_of_the_fit(place, tmp_path):
    dataset = latem.read_folder(place / "set")
    X, y = dataset.training()
    columns = [f"f{i}" for i in range(X.shape[1])]
    model = latem.ESZSL(dataset.embeddings["att"]).fit(pd.DataFrame(X, columns=columns), y)
    shuffled = pd.read_parquet(place / "parts" / "0.parquet").iloc[:, ::-1]
    shuffled.assign(more=1.0).to_parquet(tmp_path / "shuffled.parquet")
    names = [
        name_features(model, source, id_column="key").names.tolist()
        for source in (place / "parts" / "0.parquet", tmp_path / "shuffled.parquet")
    ]
    assert names[0] == names[1]
    shuffled.drop(columns="f3").to_parquet(tmp_path / "shuffled.parquet")
    with pytest.raises(ValueError, match="lacks the columns 'f3'"):
        name_features(model, tmp_path / "shuffled.parquet", id_column="key")


@pytest.mark.usefixtures("short_chunks")
@pytest.mark.parametrize("source", ["rows.npy", "parts"])
def test_a_stopped_run_goes_on_to_the_same_bytes(model, place, frame, tmp_path, source):
    out = tmp_path / "a.csv"
    options = {"id_column": "key"} if source == "parts" else {}
    for after in (1, 1500, 3000):
        stopped(model, place / source, out, after, **options)
        assert not out.exists()
    journal = tmp_path / ".a.csv.answers" / "answers.journal"
    content = bytearray(journal.read_bytes())
    content[-1000] ^= 1  # a disk that kept something else
    journal.write_bytes(content)
    bulk = name_features_in_bulk(model, place / source, out, **options)
    assert bulk.n_resumed == 2560  # of the 3072 that were done, all chunks but the spoilt one
    names = [f'"{i}", a row' for i in range(N_ROWS)] if options else [str(i) for i in range(N_ROWS)]
    assert out.read_text() == as_csv(frame, names)
    assert left_over(tmp_path) == []


@pytest.mark.usefixtures("short_chunks")
def test_what_changes_meanwhile_is_noticed(model, place, tmp_path):
    out = tmp_path / "a.csv"
    for change in ({"top": 1}, {"classes": "all"}, {"false_accept_rate": 0.5}):
        stopped(model, place / "rows.npy", out, 600)
        assert name_features_in_bulk(model, place / "rows.npy", out, **change).n_resumed == 0
    stopped(model, place / "rows.npy", out, 600)
    assert name_features_in_bulk(model, place / "set", out).n_resumed == 0


@pytest.mark.usefixtures("short_chunks")
def test_a_journal_that_is_cut_anywhere_is_continued_or_begun_anew(model, place, tmp_path):
    out = tmp_path / "a.csv"
    stopped(model, place / "rows.npy", out, 1024)
    journal = tmp_path / ".a.csv.answers" / "answers.journal"
    content = journal.read_bytes()
    name_features_in_bulk(model, place / "rows.npy", out)
    whole = out.read_bytes()
    for cut in (0, 10, len(content) // 3, len(content) - 1):
        journal.parent.mkdir()
        journal.write_bytes(content[:cut])
        assert name_features_in_bulk(model, place / "rows.npy", out).n_resumed < 1024
        assert out.read_bytes() == whole


def test_two_runs_at_once_do_not_meet(model, place, tmp_path):
    out = tmp_path / "a.csv"

    class Stop(Exception):
        pass

    def progress(done, total):
        with pytest.raises(BlockingIOError, match="Another run is writing"):
            name_features_in_bulk(model, place / "rows.npy", out)
        raise Stop

    with pytest.raises(Stop):
        name_features_in_bulk(model, place / "rows.npy", out, progress=progress)


@pytest.mark.usefixtures("short_chunks")
def test_a_row_that_is_not_finite_is_named(model, place, tmp_path):
    X = np.load(place / "rows.npy")
    X[4321, 7] = np.nan
    np.save(tmp_path / "odd.npy", X)
    with pytest.raises(ValueError, match=r"odd.npy: ESZSL got X with NaN in row 4321, column 7"):
        name_features(model, tmp_path / "odd.npy")
    X = X.astype(np.float64)
    X[4321, 7] = 1e300
    np.save(tmp_path / "odd.npy", X)
    with pytest.raises(ValueError, match="among rows 4096 to 4607 that are too large"):
        name_features(model, tmp_path / "odd.npy")
    with pytest.raises(ValueError, match="among rows 4096 to 4607 that are too large"):
        name_features_in_bulk(model, tmp_path / "odd.npy", tmp_path / "a.csv")
    assert left_over(tmp_path) == []  # nothing to go on from


def test_a_file_that_is_also_read_is_not_written_over(model, place):
    with pytest.raises(FileExistsError, match=r"0\.parquet is what is read"):
        name_features_in_bulk(
            model, place / "parts", place / "parts" / "0.parquet", id_column="key"
        )


def test_chunks_are_whole_blocks_of_about_the_same_size():
    for n_scored in ((2,), (200, 150), (8, 1500), (5000,), (16_500,), (20_000, 50), (200_000,)):
        lengths = {block_rows(n, in_parts=parts) for n in n_scored for parts in (False, True)}
        for width in (8, 1024, 10**7):
            for top in (1, 300):
                rows = chunk_rows(width, n_scored, top)
                assert rows >= 1
                assert not any(rows % length for length in lengths)
                at_once = max(4 * width * rows, 32 * top * rows)
                assert at_once <= bulk_features.CHUNK_BYTES or rows <= 3 * 512


def test_memory_does_not_grow_with_the_rows(place, tmp_path, monkeypatch):
    """NumPy tells tracemalloc of its arrays. How much is at work in both threads differs.

    Even the fewer rows are several groups of a Parquet file, of which two or three are at work.
    """
    chunk = 1024 * 32 * 4
    monkeypatch.setattr(bulk_features, "CHUNK_BYTES", chunk)
    model = latem.load(place / "model")
    X = np.load(place / "rows.npy")
    peaks = []
    for times in (8, 48):
        np.save(tmp_path / "many.npy", np.tile(X, (times, 1)))
        tracemalloc.start()
        name_features_in_bulk(model, tmp_path / "many.npy", tmp_path / "a.parquet", top=3)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 8 * chunk
    assert 40 * X.nbytes > 16 * 8 * chunk  # a kept 16th of the rows would show


def test_no_more_is_read_ahead_than_is_said(model, place, monkeypatch, tmp_path):
    monkeypatch.setattr(bulk_features, "CHUNK_BYTES", 512 * 32 * 4)
    begun = []
    chunks = bulk_features.open_features(place / "rows.npy")
    original = chunks.chunks

    def counted(start, size):
        for chunk in original(start, size):
            begun.append(1)
            yield chunk

    monkeypatch.setattr(chunks, "chunks", counted)
    ahead = []

    def progress(done, total):
        time.sleep(0.02)  # the reader has time to go too far
        ahead.append(len(begun) - done // 512)

    name_features_in_bulk(model, chunks, tmp_path / "a.csv", progress=progress)
    assert max(ahead) <= bulk_features.READ_AHEAD + resolve_threads(None)


@pytest.mark.usefixtures("short_chunks")
def test_groups_of_a_parquet_file_are_long(model, place, tmp_path):
    from pyarrow.parquet import ParquetFile

    np.save(tmp_path / "many.npy", np.tile(np.load(place / "rows.npy"), (4, 1)))
    name_features_in_bulk(model, tmp_path / "many.npy", tmp_path / "a.parquet", top=2)
    told = ParquetFile(tmp_path / "a.parquet").metadata
    groups = [told.row_group(i).num_rows for i in range(told.num_row_groups)]
    assert groups == [32_768, 2 * 4 * N_ROWS - 32_768]


def test_a_file_that_changes_meanwhile_is_told(model, place, tmp_path):
    """The answers of both states would be of no file that ever was."""
    X = np.load(place / "rows.npy")
    np.save(tmp_path / "rows.npy", X)

    def progress(done, total):
        np.save(tmp_path / "rows.npy", X[::-1])

    with pytest.raises(OSError, match=r"rows\.npy has changed while it was read"):
        name_features_in_bulk(
            model, tmp_path / "rows.npy", tmp_path / "a.csv", top=1, progress=progress
        )
    assert not (tmp_path / "a.csv").exists()
    with pytest.raises(OSError, match=r"rows\.npy has changed while it was read"):
        name_features(model, tmp_path / "rows.npy", top=1, progress=progress)
    assert name_features_in_bulk(model, tmp_path / "rows.npy", tmp_path / "a.csv").n_resumed == 0
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("known", [True, False])
def test_chunks_are_cut_where_seen_classes_beside_the_candidates_are(model, place, known):
    """Their blocks are other ones than those of the candidates, if there are many of them."""
    if not known:
        dataset = latem.read_folder(place / "set")
        model = latem.ESZSL(dataset.embeddings["att"]).fit(*dataset.training())
    scored = []
    each_scored = model.each_scored

    def noted(X, classes, keep):
        scored.append(len(model.candidate_names(classes)))
        each_scored(X, classes, keep)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "each_scored", noted)
        asked = Asked(model, "unseen", 1)
        asked.columns(np.load(place / "rows.npy")[:10])
    assert sorted(asked.n_scored) == sorted(scored) == ([6, 20] if known else [6])


def test_memory_does_not_grow_with_the_number_of_names(place, tmp_path):
    """Of narrow rows many fit into a chunk, but not of their answers."""
    world = make_latent_world(n_unseen=300, n_images=1, n_features=8, random_state=0)
    model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    np.save(tmp_path / "rows.npy", np.zeros((30_000, 8), np.float16))
    tracemalloc.start()
    name_features_in_bulk(model, tmp_path / "rows.npy", tmp_path / "a.parquet", top=300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6 < 30_000 * 300 * 16  # places and scores of all of them


@pytest.mark.filterwarnings("error")
def test_several_runs_at_once_leave_no_filter_of_warnings(place, tmp_path):
    dataset = latem.read_folder(place / "set")
    X, y = dataset.training()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    model = latem.ESZSL(dataset.embeddings["att"]).fit(frame, y)
    before = list(warnings.filters)
    first_is_in, second_is_in = threading.Event(), threading.Event()

    def first(done, total):
        first_is_in.set()
        second_is_in.wait(10)

    def second(done, total):
        second_is_in.set()
        thread.join()  # the first one ends before the second one

    thread = threading.Thread(
        target=name_features, args=(model, place / "rows.npy"), kwargs={"progress": first}
    )
    thread.start()
    first_is_in.wait(10)
    name_features(model, place / "rows.npy", progress=second)
    assert warnings.filters == before


@pytest.mark.slow
def test_a_killed_command_goes_on(place, tmp_path):
    """By command, killed while it answers, ends in the bytes of an undisturbed run."""
    np.save(tmp_path / "many.npy", np.tile(np.load(place / "rows.npy"), (40, 1)))
    line = [sys.executable, "-m", "latem", "predict", str(place / "model"),
            str(tmp_path / "many.npy"), "--top", "1", "-q"]  # fmt: skip
    journal = tmp_path / ".a.csv.answers" / "answers.journal"
    with subprocess.Popen([*line, "--out", str(tmp_path / "a.csv")]) as run:
        while run.poll() is None:
            if journal.is_file() and journal.stat().st_size > 10_000:
                run.send_signal(signal.SIGKILL)
                break
            time.sleep(0.001)
    for name in ("a.csv", "b.csv"):
        done = subprocess.run(
            [*line, "--out", str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "200000 rows are answered" in done.stdout
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert left_over(tmp_path) == []


def test_the_command_prints_what_it_finds(place):
    run = command("predict", place / "model", place / "set", "--format", "csv", "--top", 1, "-q")
    assert run.exit_code == 0, run.output
    lines = run.stdout.splitlines()
    assert lines[0].startswith("picture,place,class")
    assert len(lines) == 1 + len(latem.read_folder(place / "set").features)


def test_a_journal_of_another_question_is_begun_anew(model, tmp_path):
    asked, path = Asked(model), tmp_path / "journal"
    ColumnJournal(path, "first", asked, 100, 10)
    before = path.read_bytes()
    assert ColumnJournal(path, "first", asked, 100, 10).n_answers == 0
    assert path.read_bytes() == before
    ColumnJournal(path, "second", asked, 100, 10)
    assert path.read_bytes() != before
