"""Word vectors of class names: every file format, the look-up rule, errors, memory, training."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import zipped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from latem.core.memory import TooLargeError
from latem.core.storage import FileFormatError
from latem.embeddings import word_files
from latem.embeddings.words import normalise_name, train_word_vectors, word_embeddings

WORDS = ["zebra", "horse", "blue_jay", "blue", "Paris", "café", "leaf", "fox", "pony"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)


class Known(dict):
    """The least that stands for word vectors: a dict with a width."""

    vector_size = 2


def known(*words):
    return Known({word: np.array([i + 1.0, (i + 1.0) ** 2]) for i, word in enumerate(words)})


def text_file(path, words, vectors, header):
    lines = [f"{len(words)} {vectors.shape[1]}"] if header else []
    lines += [
        f"{word} {' '.join(str(float(v)) for v in row)}"
        for word, row in zip(words, vectors, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def binary_file(path, words, vectors, *, newline="\n", dtype="<f4"):
    parts = [f"{len(words)} {vectors.shape[1]}\n".encode()]
    for word, row in zip(words, vectors, strict=True):
        parts += [word.encode(), b" ", row.astype(dtype).tobytes(), newline.encode()]
    path.write_bytes(b"".join(parts))
    return path


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("001.Black_footed_Albatross", ["black", "footed", "albatross"]),
        ("12_cat", ["cat"]),
        ("n02085620-Chihuahua", ["chihuahua"]),
        ("grizzly+bear", ["grizzly", "bear"]),
        ("Brewer's Blackbird", ["brewer", "blackbird"]),
        ("Clark’s_nutcracker", ["clark", "nutcracker"]),
        ("horses' tails", ["horses", "tails"]),
        ("O'Neill", ["o'neill"]),
        ("St. Bernard/dog", ["st", "bernard", "dog"]),
        ("3-toed sloth", ["3", "toed", "sloth"]),
        ("707", ["707"]),
        ("Élan_vital", ["élan", "vital"]),
        ("_", []),
    ],
)
def test_normalise_name(name, words):
    assert normalise_name(name) == words


@given(st.text())
def test_normalised_words_are_clean_and_stay(name):
    words = normalise_name(name)
    assert all(words)
    assert not set("".join(words)) & set(" _-+./\t\n")


# -- the rule ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "vocabulary", "used", "missing", "how"),
    [
        ("Blue_Jay", ["Blue_Jay", "blue_jay", "blue", "jay"], "Blue_Jay", "", "phrase"),
        ("003.Blue_Jay", ["blue_jay", "blue", "jay"], "blue_jay", "", "phrase"),
        ("blue jay", ["Blue_Jay", "blue", "jay"], "Blue_Jay", "", "phrase"),
        ("blue+jay", ["blue jay", "blue", "jay"], "blue jay", "", "phrase"),
        ("blue jay", ["blue-jay", "blue", "jay"], "blue-jay", "", "phrase"),
        ("black-footed cat", ["black-footed_cat", "cat"], "black-footed_cat", "", "phrase"),
        ("blue_jay", ["blue", "jay"], "blue, jay", "", "words"),
        ("Blue_Jay", ["Blue", "blue", "jay"], "Blue, jay", "", "words"),
        ("paris", ["Paris"], "Paris", "", "words"),
        ("blue_jabberwock", ["blue"], "blue", "jabberwock", "words"),
        ("ponies", ["pony"], "pony", "", "words"),
        ("Wolves", ["wolf"], "wolf", "", "words"),
        ("knives", ["knife"], "knife", "", "words"),
        ("foxes", ["fox"], "fox", "", "words"),
        ("horses", ["hors", "horse"], "horse", "", "words"),
        ("cats", ["cats", "cat"], "cats", "", "words"),
        ("alps", ["Alp"], "Alp", "", "words"),
    ],
)
def test_which_words_stand_for_a_name(name, vocabulary, used, missing, how):
    vectors = known(*vocabulary)
    table, report = word_embeddings([name], vectors)
    assert report.loc[name].tolist() == [used, missing, how]
    expected = np.mean([vectors[word] for word in used.split(", ")], axis=0)
    np.testing.assert_allclose(table[name], expected)


def test_words_that_only_look_like_plurals_stay():
    for name, near in [("glass", "glas"), ("walrus", "walru"), ("iris", "iri"), ("gas", "ga")]:
        with pytest.raises(ValueError, match="found no word"):
            word_embeddings([name], known(near))


def test_table_and_report(tmp_path):
    names = ["2.Blue_Jay", "zebra", "horse_café"]
    path = text_file(tmp_path / "glove.6B.6d.txt", WORDS, VECTORS, header=False)
    table, report = word_embeddings(names, zipped(path))
    assert table.name == "glove.6B.6d"
    assert table.columns is None
    assert table.names.tolist() == names == report.index.tolist()
    assert report.columns.tolist() == ["used", "missing", "how"]
    expected = [VECTORS[2], VECTORS[0], (VECTORS[1].astype(float) + VECTORS[5]) / 2]
    np.testing.assert_allclose(table.vectors, expected, rtol=1e-6)
    assert word_embeddings(names, path, name="glo")[0].name == "glo"
    assert word_embeddings(["a"], known("a"))[0].name == ""


def test_synonyms_come_before_everything(tmp_path):
    vectors = known("bobcat", "lynx", "blue_jay")
    mapping = {"bobcat": "lynx", "x1": "blue jay", "other": "nothing"}
    path = tmp_path / "synonyms.csv"
    path.write_text("\ufeffclass,words\nbobcat,lynx\n\nx1,blue jay\n", encoding="utf-8")
    for synonyms in (mapping, path, str(path)):
        table, report = word_embeddings(["bobcat", "x1"], vectors, synonyms=synonyms)
        assert report["used"].tolist() == ["lynx", "blue_jay"]
        assert set(report["how"]) == {"synonym"}
        np.testing.assert_array_equal(table["bobcat"], vectors["lynx"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name,words\na,b\n", "starts with the line class,words, not 'name,words'"),
        (b"", "starts with the line class,words"),
        (b"class,words\na,b,c\n", "line 2: 3 cells"),
        (b"class,words\na,b\na,c\n", "line 3: class 'a' is listed twice"),
        (b"class,words\n\xff,b\n", "not UTF-8"),
        (b'class,words\n"a,b\n', "line 2: unexpected end of data"),
    ],
)
def test_bad_files_of_synonyms(tmp_path, content, message):
    path = tmp_path / "synonyms.csv"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=message) as error:
        word_embeddings(["a"], known("a"), synonyms=path)
    assert "synonyms.csv" in str(error.value)


def test_bad_synonyms():
    with pytest.raises(TypeError, match=r"class 'a' \['b'\]; give its words as one text"):
        word_embeddings(["a"], known("a"), synonyms={"a": ["b"]})
    with pytest.raises(FileNotFoundError, match="no file of synonyms 'none.csv'"):
        word_embeddings(["a"], known("a"), synonyms="none.csv")


def test_classes_with_the_same_vector_are_named():
    with pytest.warns(UserWarning, match="apart: 'jay', 'Jay_bird'. Give them different words"):
        word_embeddings(["jay", "Jay_bird", "cat"], known("jay", "cat"))


def test_unknown_classes_are_listed_with_near_words(tmp_path):
    path = text_file(tmp_path / "w.txt", WORDS, VECTORS, header=True)
    with pytest.raises(ValueError, match="these 3 classes in .*w.txt") as error:
        word_embeddings(["zebar", "horze", "qqq_xyz", "horse"], path)
    assert "'horze' (it knows 'horse')" in str(error.value)  # though another class uses it
    assert "'zebar' (it knows 'zebra')" in str(error.value)
    assert "  'qqq_xyz'\n" in str(error.value)
    assert "synonyms={'zebar': '...'}" in str(error.value)


@pytest.mark.parametrize(
    ("names", "vectors", "error", "message"),
    [
        ("zebra", known("zebra"), TypeError, "list of class names, not the text 'zebra'"),
        ([1, 2], known("zebra"), TypeError, "class names as text, but 1 is int"),
        ([], known("zebra"), ValueError, "at least one class"),
        (["zebra", "zebra"], known("zebra"), ValueError, "'zebra' is listed twice"),
        (["zebra"], {"zebra": [1]}, TypeError, "like gensim's KeyedVectors .*, not dict"),
        (["zebra"], "none.txt", FileNotFoundError, "no file of word vectors 'none.txt'"),
        (["zebra"], Known(zebra=np.ones(3)), ValueError, r"shape \(3,\).* vectors of 2 values"),
    ],
)
def test_bad_arguments(names, vectors, error, message):
    with pytest.raises(error, match=message):
        word_embeddings(names, vectors)


# -- files ------------------------------------------------------------------------------------

floats = st.floats(-100, 100, width=32)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    vectors=st.integers(3, 40).flatmap(
        lambda width: hnp.arrays(np.float32, (len(WORDS), width), elements=floats)
    )
)
@pytest.mark.filterwarnings("ignore:Classes with identical vectors")
def test_same_vectors_from_every_format(tmp_path, vectors):
    paths = [
        text_file(tmp_path / "glove.txt", WORDS, vectors, header=False),
        text_file(tmp_path / "fasttext.vec", WORDS, vectors, header=True),
        binary_file(tmp_path / "gensim.bin", WORDS, vectors, newline=""),
        binary_file(tmp_path / "original.bin", WORDS, vectors),
    ]
    for path in paths + [zipped(path) for path in paths]:
        table, report = word_embeddings(WORDS, path)
        np.testing.assert_array_equal(table.vectors, vectors)
        assert report["used"].tolist() == WORDS


def test_files_and_objects_of_gensim(tmp_path):
    models = pytest.importorskip("gensim.models")
    vectors = models.KeyedVectors(6)
    vectors.add_vectors(WORDS, VECTORS)
    vectors.save_word2vec_format(str(tmp_path / "a.txt"), binary=False)
    vectors.save_word2vec_format(str(tmp_path / "a.bin"), binary=True)
    vectors.save(str(tmp_path / "a.kv"))
    sources = [tmp_path / "a.txt", tmp_path / "a.bin", vectors]
    sources += [zipped(path) for path in sources[:2]]
    for source in sources:
        np.testing.assert_array_equal(word_embeddings(WORDS, source)[0].vectors, VECTORS)
    table, _ = word_embeddings(WORDS, tmp_path / "a.kv", allow_pickle=True)
    np.testing.assert_array_equal(table.vectors, VECTORS)
    assert table.name == "a"
    with pytest.raises(ValueError, match="a.kv is a pickle.*allow_pickle=True, or convert"):
        word_embeddings(WORDS, tmp_path / "a.kv")
    with pytest.raises(ValueError, match="'zebar' .it knows 'zebra'"):
        word_embeddings(["zebar"], vectors)


def test_fasttext_objects_do_not_make_up_phrases():
    models = pytest.importorskip("gensim.models")
    model = models.FastText([["blue", "jay"]] * 3, vector_size=4, min_count=1, workers=1, seed=0)
    assert "blue_jay" in model.wv
    assert word_embeddings(["blue_jay"], model.wv)[1]["how"].tolist() == ["words"]


def test_limit(tmp_path):
    vectors = known("a")
    with pytest.raises(ValueError, match="limit=0; give at least 1"):
        word_embeddings(["a"], vectors, limit=0)
    with pytest.raises(ValueError, match="limit=1, but Known does not say"):
        word_embeddings(["a"], vectors, limit=1)
    paths = [
        text_file(tmp_path / "w.txt", WORDS, VECTORS, header=True),
        binary_file(tmp_path / "w.bin", WORDS, VECTORS),
    ]
    for path in paths:
        assert word_embeddings(["horse"], path, limit=2)[1]["used"].tolist() == ["horse"]
        with pytest.raises(ValueError, match="found no word"):
            word_embeddings(["horse"], path, limit=1)
    ordered = known("a", "b")
    ordered.key_to_index = {"a": 0, "b": 1}
    assert word_embeddings(["a"], ordered, limit=1)[1]["used"].tolist() == ["a"]
    with pytest.raises(ValueError, match="found no word"):
        word_embeddings(["b"], ordered, limit=1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"zebra\n", "not a file of word vectors: its first line is b'zebra"),
        (b"PK\x03\x04\x00\x00 zip zip\n", "not a file of word vectors"),
        (b"0 3\n", "promises 0 words of 3 values"),
        (b"3 0\nzebra\n", "promises 3 words of 0 values"),
        (b"3 999999999\nzebra \x00\x01", "promises 3 words of 999999999 values"),
        (b"2 2\nzebra 1 2\nhorse 1\n", "line 3: 1 values after 'horse', but .* says 2"),
        (b"2 2\nzebra 1 2\nhorse 1 2 3\n", "line 3: 3 values after 'horse'"),
        (b"2 3\nzebra 1 2\nhorse 1 2\n", "line 2: 2 values after 'zebra', but .* says 3"),
        (b"zebra 1 2\nhorse 1\n", "line 2: 1 values after 'horse'"),
        (b"2 2\nhorse 1 x\nzebra 1 2\n", r"line 2 \('horse'\): 'x' is not a number"),
        (b"3 2\nhorse 1 2\nzebra 1 2\n", "promises 3 words in its first line, but holds 2"),
        (b"1 2\nhorse 1 2\nzebra 1 2\n", "promises 1 words in its first line, but holds 2"),
        (b"horse 1 2\nzebra 1 two\n", r"line 2 \('zebra'\): 'two' is not a number"),
        (b"horse 1 x\nzebra 1 2\n", r"line 1 \('horse'\): 'x' is not a number"),
        (b"horse 1 2\nzebra 1  2 \n", None),
        (b"horse 1 2 3\nzebra 1  2\n", r"line 2 \('zebra'\): 2 values instead of 3"),
        (b"horse 1 2\nzebra 1 nan\n", r"line 2 \('zebra'\): nan cannot be part"),
        (b"horse 1 2\nzebra 1 1e39\n", r"1e\+39 cannot be part"),
        (b"2 2\nhorse \x00\x00\x80?\x00\x00\x80?zebra \x00\x00\x80", "ends within word 2"),
        (b"2 2\nhorse \x00\x00\x80?\x00\x00\x80?", "ends within word 2"),
        (b"1 2\nzebra \x00\x00\x80?\x00\x00\x80?cat \x00\x00\x80?", "goes on after the 1 words"),
        (b"9 1\nzebra \x00\x00\x80?" + b"x" * 100_000, "word 2 does not end"),
        (b"1 1\nzebra \x00\x00\xc0\x7f", r"word 1 \('zebra'\): nan .* may be big-endian or not"),
        (gzip.compress(b"horse 1 2\nzebra 1 2\n" * 99, mtime=0)[:-12], "damaged gzip file"),
        (gzip.compress(b"\x80\x04.", mtime=0), "is a pickle"),
    ],
)
def test_bad_files_are_refused_with_place_and_reason(tmp_path, content, message):
    path = tmp_path / "w.bin"
    path.write_bytes(content)
    if message is None:
        np.testing.assert_array_equal(word_embeddings(["zebra"], path)[0]["zebra"], [1, 2])
        return
    with pytest.raises(ValueError, match=message) as error:
        word_embeddings(["zebra"], path)
    assert "w.bin" in str(error.value)


def test_big_endian_binary_is_suspected(tmp_path):
    path = binary_file(tmp_path / "w.bin", WORDS, VECTORS, dtype=">f4")
    with pytest.raises(FileFormatError, match="big-endian"):
        word_embeddings(["horse"], path)


@given(cut=st.integers(0, 200))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_cut_off_binary_file_is_taken_for_whole(tmp_path, cut):
    path = binary_file(tmp_path / "w.bin", WORDS, VECTORS, newline="")
    content = path.read_bytes()
    path.write_bytes(content[: min(cut, len(content) - 1)])
    with pytest.raises(FileFormatError, match="w.bin"):
        word_embeddings(["zebra"], path)


def test_oddities_of_real_files(tmp_path):
    path = tmp_path / "glove.txt"
    lines = [
        b"\xef\xbb\xbfthe 1 2",
        b". . . 3 4",  # GloVe's 840B holds words with spaces
        b"caf\xe9 5 6",  # not UTF-8
        b"\xc2\xa0 7 8",  # a non-breaking space
        b"tab\t9\t10",
        b"twice 11 12",
        b"twice 0 0",
        b"windows 13 14\r",
        b"\x0c",  # a page's end
        b"",
    ]
    path.write_bytes(b"\n".join(lines))
    names = ["the", "tab", "twice", "windows"]
    table, _ = word_embeddings(names, path)
    assert table.vectors.tolist() == [[1, 2], [9, 10], [11, 12], [13, 14]]


def test_binary_numbers_may_spell_text(tmp_path):
    vectors = np.frombuffer(b"?}#B" * 3 * len(WORDS), dtype="<f4").reshape(-1, 3)
    path = binary_file(tmp_path / "w.bin", WORDS, vectors, newline="")
    with pytest.warns(UserWarning, match="identical"):
        table, _ = word_embeddings(WORDS, path)
    np.testing.assert_array_equal(table.vectors, vectors)


def test_small_reads_find_the_same_words(tmp_path, monkeypatch):
    path = binary_file(tmp_path / "w.bin", WORDS, VECTORS)
    monkeypatch.setattr(word_files, "_CHUNK", 13)
    np.testing.assert_array_equal(word_embeddings(WORDS, path)[0].vectors, VECTORS)


def test_gensim_is_only_needed_for_its_own_files(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    path = text_file(tmp_path / "w.txt", WORDS, VECTORS, header=True)
    assert len(word_embeddings(["zebra"], path)[0]) == 1
    (tmp_path / "a.kv").write_bytes(b"\x80\x04.")
    with pytest.raises(ImportError, match=r"a.kv needs gensim: pip install 'latem\[words\]'"):
        word_embeddings(["zebra"], tmp_path / "a.kv", allow_pickle=True)
    with pytest.raises(ImportError, match="Training word vectors needs gensim"):
        train_word_vectors([["a"]])


# -- memory -----------------------------------------------------------------------------------

LOOK_UP = """
import re, sys, time
from latem.embeddings.words import word_embeddings

def peak():  # of this process alone: getrusage would count the one that started it
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

names = [f"w{i * int(sys.argv[2]) // 200:07d}" for i in range(200)]
before, start = peak(), time.perf_counter()
table, _ = word_embeddings(names, sys.argv[1])
print(peak() - before, time.perf_counter() - start, table.vectors[:, 0].astype(int).tolist())
"""


def big_file(path, n_words, width=50):
    """A binary file whose words are w0000000 ... and whose first values are their numbers."""
    with open(path, "wb") as file:
        file.write(f"{n_words} {width}\n".encode())
        for start in range(0, n_words, 100_000):
            numbers = np.arange(start, min(start + 100_000, n_words))
            rows = np.zeros(len(numbers), dtype=[("word", "S9"), ("vector", "<f4", width)])
            rows["word"] = [b"w%07d " % number for number in numbers]
            rows["vector"][:, 0] = numbers
            rows.tofile(file)
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize(
    ("n_words", "bound"),
    [(300_000, 150), pytest.param(3_000_000, 1024, marks=pytest.mark.slow)],
)
def test_memory_does_not_grow_with_the_file(tmp_path, n_words, bound):
    path = big_file(tmp_path / "big.bin", n_words)
    done = subprocess.run(
        [sys.executable, "-c", LOOK_UP, str(path), str(n_words)],
        capture_output=True,
        text=True,
        check=True,
    )
    path.unlink()
    grown, seconds, first = done.stdout.split(maxsplit=2)
    print(f"{n_words} words: {grown} MB in {seconds} s")
    assert first.strip() == str([i * n_words // 200 for i in range(200)])
    assert float(grown) < bound


@pytest.mark.parametrize("zip_it", [False, True])
def test_a_line_without_end_is_refused(tmp_path, zip_it):
    path = tmp_path / "bomb.txt"
    path.write_bytes(b"ant 1 2\nbee " + b"1" * (1 << 23) + b" 2\ncat 1 2\n")
    path = zipped(path) if zip_it else path
    with pytest.raises(FileFormatError, match=r"bomb\.txt\S*, line 2 does not end within"):
        word_embeddings(["ant"], path)
    with pytest.raises(FileFormatError, match=r"bomb\.txt\S*, line 2 does not end within"):
        word_files.WordVectors(path)


@pytest.mark.parametrize("line", ["ant 4_0 1", "ant 1 1_000"])
def test_numbers_with_underscores_are_none(tmp_path, line):
    path = tmp_path / "words.txt"
    path.write_text(f"2 2\nbee 1 2\n{line}\n")
    with pytest.raises(FileFormatError, match=r"line 3 .*_0+' is not a number"):
        word_embeddings(["ant"], path)


def test_what_unpacks_to_far_more_than_itself_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{word} 1 2\n" for word in ("ant", *["bee"] * 10**5)))
    path = zipped(path)
    assert word_embeddings(["ant"], path)[0].vectors.tolist() == [
        [1, 2]
    ]  # little enough for anybody
    monkeypatch.setattr("latem.core.memory.LARGEST_UNPACKED", 10**5)
    monkeypatch.setattr(word_files, "_CHUNK", 10**4)
    for read in (lambda path: word_embeddings(["ant"], path), word_files.WordVectors):
        with pytest.raises(TooLargeError, match="would unpack to .* unpack it first"):
            read(path)


def test_many_short_words_in_memory(tmp_path, monkeypatch):
    path = tmp_path / "words.txt"
    path.write_text("".join(f"w{number} 1\n" for number in range(1000)))
    assert len(word_files.WordVectors(path).key_to_index) == 1000
    monkeypatch.setattr("latem.core.memory.LARGEST_UNPACKED", 10**5)
    with pytest.raises(TooLargeError, match="read its first words only"):
        word_files.WordVectors(path)
    assert len(word_files.WordVectors(path, limit=300).key_to_index) == 300
