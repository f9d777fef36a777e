"""Training word vectors on a corpus."""

import itertools
import tracemalloc

import numpy as np
import pytest
from helpers import zipped

from latem.core.storage import FileFormatError
from latem.embeddings import word_files
from latem.embeddings.words import train_word_vectors, word_embeddings

GROUPS = (["lion", "tiger", "bear", "wolf"], ["sofa", "chair", "table", "lamp"])
CONTEXTS = (["hunts", "sleeps", "runs", "roars"], ["stands", "wooden", "room", "old"])


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(1500):
        side = rng.integers(2)
        words = [*rng.choice(GROUPS[side], 2), *rng.choice(CONTEXTS[side], 3)]
        lines.append(rng.permutation(words).tolist())
    return lines


SMALL = {"vector_size": 12, "min_count": 1, "epochs": 4}


def train(corpus, **options):
    pytest.importorskip("gensim")
    return train_word_vectors(corpus, **{**SMALL, **options})


def test_words_of_one_context_end_near_each_other(corpus):
    vectors = train(corpus, epochs=25)
    within = [vectors.similarity(a, b) for g in GROUPS for a, b in itertools.combinations(g, 2)]
    across = [vectors.similarity(a, b) for a, b in itertools.product(*GROUPS)]
    assert min(within) > max(across)


def test_training_is_repeatable_and_reports_epochs(corpus):
    epochs = []
    one = train(corpus, progress=lambda *counts: epochs.append(counts))
    again = train(iter(corpus))
    other = train(corpus, seed=1)
    assert epochs == [(1, 4), (2, 4), (3, 4), (4, 4)]
    np.testing.assert_array_equal(one.vectors, again.vectors)
    assert not np.array_equal(one.vectors, other.vectors)
    assert not np.array_equal(one.vectors, train(corpus, sg=False).vectors)


def test_text_files_are_split_and_phrases_joined(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("A Blue-Jay's nest, 3 great BLUE jays.\nLe café blue\n", encoding="utf-8")
    out = tmp_path / "w2v.txt"
    for source in (path, zipped(path)):
        phrases = ["001.Blue_Jay", "cat", "great blue jays"]
        vectors = train(source, phrases=phrases, out=out)
        expected = {"a", "blue_jay", "nest", "great_blue_jays", "le", "café", "blue"}
        assert set(vectors.key_to_index) == expected
        table, report = word_embeddings(["001.Blue_Jay", "café"], out)
        assert report["how"].tolist() == ["phrase", "words"]
        np.testing.assert_array_equal(table["001.Blue_Jay"], vectors["blue_jay"])
        assert table.name == "w2v"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["corpus.txt", "corpus.txt.gz", "w2v.txt"]


def test_long_documents_are_used_to_their_end():
    words = ["start"] * 10_005 + ["end"]
    assert train([words], epochs=1).get_vecattr("end", "count") == 1


@pytest.mark.parametrize(
    ("corpus", "error", "message"),
    [
        ([], ValueError, "corpus without words: a list"),
        ([[]], ValueError, "corpus without words"),
        ([["a", "b"]], ValueError, "no word 2 times or more among the 2 of a list"),
        (["a b"], TypeError, "lists of words, not the text 'a b'"),
        ("none.txt", FileNotFoundError, "no corpus 'none.txt'"),
    ],
)
def test_bad_corpora(tmp_path, corpus, error, message):
    out = tmp_path / "w2v.txt"
    with pytest.raises(error, match=message):
        train(corpus, min_count=2, out=out)
    assert not list(tmp_path.iterdir())


def test_bad_corpus_files_and_targets(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"fine\n\xff\n")
    with pytest.raises(FileFormatError, match="corpus.txt, line 2 is not UTF-8"):
        train(path)
    path.write_bytes(b"1 2 3\n")
    with pytest.raises(ValueError, match="corpus without words: .*corpus.txt"):
        train(path)
    with pytest.raises(ValueError, match="leave out the .gz"):
        train([["a"]], out=tmp_path / "w.txt.gz")
    with pytest.raises(FileNotFoundError, match="no folder"):
        train([["a"]], out=tmp_path / "none" / "w.txt")


def test_long_lines_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(word_files, "PIECE", 20)
    path = tmp_path / "long.txt"
    path.write_text("polar bears, blue jays und große Füchse\nshort\n\nlast line is long, too")
    with open(path, "rb") as file:
        pieces = list(word_files.text_pieces(file, path))
    assert max(len(piece) for _, piece in pieces) < 40
    assert [w for _, piece in pieces for w in piece.split()] == path.read_bytes().split()
    assert {number: piece for number, piece in pieces if b"short" in piece} == {2: b"short\n"}
    assert pieces[-1][0] == 4
    path.write_text("x" * 100)
    with (
        open(path, "rb") as file,
        pytest.raises(FileFormatError, match=r"long\.txt, line 1 has no space"),
    ):
        list(word_files.text_pieces(file, path))


@pytest.mark.slow
def test_a_corpus_in_one_line_takes_little_memory(tmp_path):
    pytest.importorskip("gensim")
    n = 100_000
    (tmp_path / "line.txt").write_text("the blue jay sings to the polar bear " * n)
    tracemalloc.start()
    try:
        vectors = train(zipped(tmp_path / "line.txt"), epochs=1, vector_size=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6  # 3.7 MB of text would be 60 MB of words
    assert vectors.get_vecattr("blue", "count") == n
