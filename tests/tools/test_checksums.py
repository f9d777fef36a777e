"""Bundled data is what it was; what the tools can rebuild of it is rebuilt by tests elsewhere.

WordNet (tests/embeddings/test_hierarchy.py, byte by byte, where Debian's wordnet-base is), the base
model (tests/workflows/test_name_by_words.py, to rounding), the emoji
(tests/tools/test_build_emoji.py, slow, from npm packages). `imagenet_ids.txt` is a list that was
written down: nothing makes it.
"""

import sys

import numpy as np
from helpers import REPOSITORY

from latem import load_emoji
from latem.datasets.emoji import EMOJI_FILE
from latem.datasets.folder_writer import write_folder

sys.path.insert(0, str(REPOSITORY / "tools"))
import checksums
import pack_emoji


def test_every_bundled_file_has_its_checksum():
    assert checksums.SUMS.read_text(encoding="utf-8") == checksums.checksums()


def test_a_changed_file_is_noticed(tmp_path):
    (tmp_path / "room" / "data").mkdir(parents=True)
    file = tmp_path / "room" / "data" / "words.txt"
    file.write_bytes(b"okapi")
    before = checksums.checksums(tmp_path)
    assert before.endswith("  room/data/words.txt\n")
    file.write_bytes(b"tapir")
    assert checksums.checksums(tmp_path) != before


def test_emoji_pack_again_to_the_shipped_arrays(tmp_path):
    write_folder(load_emoji(), tmp_path / "emoji")
    pack_emoji.pack(tmp_path / "emoji", tmp_path / "again.npz")
    with np.load(EMOJI_FILE) as shipped, np.load(tmp_path / "again.npz") as again:
        assert again.files == shipped.files
        for name in set(shipped.files) - {"description"}:
            np.testing.assert_array_equal(again[name], shipped[name], err_msg=name)
