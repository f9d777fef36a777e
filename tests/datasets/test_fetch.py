"""Downloads, against a local server only."""

import hashlib
import json
import zipfile

import numpy as np
import pytest
from helpers import command
from matlab_files import write_gbu
from range_server import range_server
from typer.testing import CliRunner

from latem import read_folder
from latem.cli import app
from latem.datasets.fetch import ASK, SOURCES, download, fetch, find_source

CONTENT = np.random.default_rng(0).bytes(1_000_000)


@pytest.fixture
def server():
    with range_server(files={"/a.bin": CONTENT}) as running:
        yield running


def test_download_with_progress_and_checksum(server, tmp_path):
    seen = []
    digest = hashlib.sha256(CONTENT).hexdigest()
    path = download(
        f"{server.url}/a.bin", tmp_path / "new" / "a.bin",
        checksum=f"sha256:{digest}", progress=lambda *numbers: seen.append(numbers),
    )  # fmt: skip
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [p.name for p in path.parent.iterdir()] == ["a.bin"]
    download(f"{server.url}/a.bin", path)
    assert len(server.requests) == 1  # what is there is not fetched again


def test_an_interrupted_download_continues(server, tmp_path):
    server.break_after = 300_000
    with pytest.raises(OSError, match="stopped after .*the same command continues it"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin")
    assert not (tmp_path / "a.bin").exists()
    server.break_after = None
    assert download(f"{server.url}/a.bin", tmp_path / "a.bin").read_bytes() == CONTENT
    assert server.requests == [None, "bytes=300000-"]


@pytest.mark.parametrize("ranges", [True, False])
def test_another_file_on_the_server_starts_anew(server, tmp_path, ranges):
    server.break_after = 300_000
    with pytest.raises(OSError, match="stopped"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin")
    server.break_after, server.tag, server.ranges = None, '"two"', ranges
    server.files = {"/a.bin": CONTENT[::-1]}
    assert download(f"{server.url}/a.bin", tmp_path / "a.bin").read_bytes() == CONTENT[::-1]


def test_a_complete_or_damaged_part_does_not_block(server, tmp_path):
    (tmp_path / "a.bin.part").write_bytes(CONTENT)
    note = tmp_path / "a.bin.part.json"
    note.write_text(json.dumps({"url": f"{server.url}/a.bin", "tag": server.tag}))
    assert download(f"{server.url}/a.bin", tmp_path / "a.bin").read_bytes() == CONTENT
    (tmp_path / "b.bin.part").write_bytes(b"junk")
    (tmp_path / "b.bin.part.json").write_text("{not json")
    assert download(f"{server.url}/a.bin", tmp_path / "b.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("name", ["..%2F..%2Fevil.bin", "", "%2e%2e"])
def test_addresses_that_name_no_file(server, tmp_path, name):
    with pytest.raises(ValueError, match="does not name a file"):
        fetch(f"{server.url}/{name}", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    with pytest.raises(OSError, match="has md5 .*, not 0{32}: it is damaged or a different file"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin", checksum=f"md5:{32 * '0'}")
    assert not (tmp_path / "a.bin").exists()
    assert not (tmp_path / "a.bin.part").exists()
    for no_checksum in ("crc:00", "md5:00"):
        with pytest.raises(ValueError, match="A checksum must be"):
            download(f"{server.url}/a.bin", tmp_path / "a.bin", checksum=no_checksum)


def test_errors_of_the_server_and_the_net(server, tmp_path):
    with pytest.raises(OSError, match="none.bin: the server answered 404"):
        download(f"{server.url}/none.bin", tmp_path / "a.bin")
    with pytest.raises(OSError, match="stopped after 0 bytes"):
        download("http://127.0.0.1:9/a.bin", tmp_path / "a.bin")
    with pytest.raises(ValueError, match="not an http, https or file address"):
        download("ftp://127.0.0.1/a.bin", tmp_path / "a.bin")


def test_archives_become_dataset_folders(server, tmp_path):
    write_gbu(tmp_path / "birds")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in (tmp_path / "birds").iterdir():
            archive.write(file, f"xlsa17/data/BIRDS/{file.name}")
    server.files = {"/all.zip": (tmp_path / "all.zip").read_bytes()}
    file, made = fetch(f"{server.url}/all.zip", tmp_path / "data")
    assert file == tmp_path / "data" / "all.zip"
    assert made == [tmp_path / "data" / "BIRDS"]
    assert len(read_folder(made[0]).features) == 20
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == ["BIRDS", "all.zip"]
    assert fetch(f"{server.url}/all.zip", tmp_path / "data")[1] == made


def test_a_second_process_is_refused(server, tmp_path):
    refused = []

    def try_too(done, total):
        if not refused:
            with pytest.raises(BlockingIOError, match="Another process is fetching .*a.bin; wait"):
                download(f"{server.url}/a.bin", tmp_path / "a.bin")
            refused.append(done)

    path = download(f"{server.url}/a.bin", tmp_path / "a.bin", progress=try_too)
    assert refused
    assert path.read_bytes() == CONTENT
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_a_note_left_by_a_process_killed_at_the_end_is_removed(server, tmp_path):
    (tmp_path / "a.bin").write_bytes(CONTENT)
    (tmp_path / "a.bin.part.json").write_text("{}")
    download(f"{server.url}/a.bin", tmp_path / "a.bin")
    assert server.requests == []
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_unpacking_is_done_alone_as_well(server, tmp_path, monkeypatch):
    from latem.datasets import fetch as module

    refused = []

    def try_too(file, folder):
        with pytest.raises(BlockingIOError, match="Another process is fetching"):
            fetch(f"{server.url}/a.bin", folder)
        refused.append(file.name)
        return []

    monkeypatch.setattr(module, "unpack_datasets", try_too)
    fetch(f"{server.url}/a.bin", tmp_path)
    assert refused == ["a.bin"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_a_lock_of_a_killed_process_does_not_matter(server, tmp_path):
    (tmp_path / ".a.bin.lock").touch()
    assert download(f"{server.url}/a.bin", tmp_path / "a.bin").read_bytes() == CONTENT
    assert [p.name for p in tmp_path.iterdir()] == ["a.bin"]


def test_a_truncated_zip_fails_on_the_command_line(server, tmp_path):
    write_gbu(tmp_path / "birds")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "birds" / "res101.mat", "birds/res101.mat")
    server.files = {"/all.zip": (tmp_path / "all.zip").read_bytes()[:-30]}
    result = command("data", "fetch", f"{server.url}/all.zip", "--out", tmp_path / "data", "-q")
    assert result.exit_code == 1
    assert "all.zip is cut short or no zip file; delete it and fetch it again." in result.output


def test_sources_have_a_page_that_states_them():
    for source in SOURCES.values():
        assert source.url.startswith("http")
        assert source.stated_by.startswith("http")
    assert find_source("xlsa17") == SOURCES["xlsa17"].url
    with pytest.raises(ValueError, match="no download called 'CUB'. Known: xlsa17") as error:
        find_source("CUB")
    for where in ASK.values():
        assert where in str(error.value)


def test_fetch_on_the_command_line(server, tmp_path):
    result = CliRunner().invoke(
        app, ["data", "fetch", f"{server.url}/a.bin", "--out", str(tmp_path), "--quiet"]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    result = CliRunner().invoke(app, ["data", "fetch", "nonsense", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "no download called 'nonsense'" in result.output
