"""WordNet's nouns and the embeddings made of them: known facts, the formula, clear errors."""

import gzip
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import REPOSITORY

from latem.embeddings.hierarchy import find_sense, hierarchy_embeddings
from latem.embeddings.wordnet import LEXNAMES, WORDNET_FILE, load_wordnet

SOURCE = Path("/usr/share/wordnet")
ENTITY = 1740


@pytest.fixture(scope="module")
def wordnet():
    return load_wordnet()


def slow_distances(wordnet, synset):
    """Fewest steps to every ancestor, one level after the other."""
    distances, level, step = {}, {synset.offset}, 0
    while level:
        for offset in level:
            distances.setdefault(offset, step)
        level = {parent for offset in level for parent in wordnet.synset(offset).hypernyms}
        step += 1
    return distances


# -- the file ---------------------------------------------------------------------------------


@pytest.mark.skipif(not (SOURCE / "data.noun").exists(), reason="needs Debian's wordnet-base")
def test_the_packer_reproduces_the_shipped_files(tmp_path):
    path = REPOSITORY / "tools" / "pack_wordnet.py"
    spec = importlib.util.spec_from_file_location("pack_wordnet", path)
    packer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(packer)
    packer.pack(SOURCE, tmp_path / "data" / WORDNET_FILE.name)
    for shipped in (WORDNET_FILE, WORDNET_FILE.with_name(packer.LICENCE_NAME)):
        assert (tmp_path / "data" / shipped.name).read_bytes() == shipped.read_bytes()


def test_the_file_is_small_and_comes_with_its_licence():
    assert 1e6 < WORDNET_FILE.stat().st_size < 1.5e6
    licence = WORDNET_FILE.with_name("WORDNET-LICENCE.txt").read_text()
    for words in (
        "Permission to use, copy, modify and distribute",
        "WordNet 3.0 Copyright 2006 by Princeton University.  All rights reserved.",
        "LICENSEE agrees to preserve same.",
    ):
        assert words in licence


def test_loading_is_fast_and_done_once():
    n_steps = 0

    def step(frame, event, arg):
        nonlocal n_steps
        n_steps += event in ("call", "c_call")

    load_wordnet.cache_clear()
    start = time.process_time()
    sys.setprofile(step)
    try:
        first = load_wordnet()
    finally:
        sys.setprofile(None)
    assert n_steps < 45 * len(first)  # 35, which take about a second
    assert time.process_time() - start < 30  # no single step is long, on any machine
    assert load_wordnet() is first


def test_every_noun_is_there_once(wordnet):
    lines = gzip.decompress(WORDNET_FILE.read_bytes()).decode().partition("\n\n")[0].splitlines()
    assert len(lines) == len(wordnet) == 82115
    assert lines == sorted(lines)
    synsets = list(wordnet)
    assert len({synset.name for synset in synsets}) == 82115
    assert {synset.lexname for synset in synsets} == {f"noun.{kind}" for kind in LEXNAMES}
    assert sum(len({lemma.lower() for lemma in synset.lemmas}) for synset in synsets) == 146312


def test_no_cycles_and_everything_is_an_entity(wordnet):
    waiting = {synset.offset: len(synset.hypernyms) for synset in wordnet}
    children = {}
    for synset in wordnet:
        for parent in synset.hypernyms:
            children.setdefault(parent, []).append(synset.offset)
    queue = [offset for offset, count in waiting.items() if count == 0]
    assert queue == [ENTITY]
    for offset in queue:
        for child in children.get(offset, []):
            waiting[child] -= 1
            if waiting[child] == 0:
                queue.append(child)
    assert len(queue) == 82115


# -- looking up -------------------------------------------------------------------------------


def test_known_synsets(wordnet):
    zebra = wordnet.synset("n02391049")
    assert (zebra.id, zebra.name, zebra.lexname) == ("n02391049", "zebra.n.01", "noun.animal")
    assert zebra.lemmas == ("zebra",)
    for key in ("zebra.n.01", "Zebra.n.1", 2391049, np.int64(2391049), "02391049", zebra):
        assert wordnet.synset(key) is zebra
    assert wordnet.synset("dog.n.01").id == "n02084071"
    assert wordnet.synset("domestic dog.n.01").name == "dog.n.01"
    assert wordnet.synset("animal.n.01").lexname == "noun.Tops"
    assert wordnet.synset("entity.n.01").hypernyms == ()
    assert [s.name for s in wordnet.hypernyms("dog.n.01")] == [
        "canine.n.02",
        "domestic_animal.n.01",
    ]


def test_ancestors_of_dog(wordnet):
    steps = {wordnet.synset(o).name: d for o, d in wordnet.ancestors("dog.n.01").items()}
    assert steps["dog.n.01"] == 0
    assert steps["canine.n.02"] == steps["domestic_animal.n.01"] == 1
    assert steps["animal.n.01"] == 2  # by way of domestic animal, not of mammal
    assert steps["entity.n.01"] == 8
    assert "cat.n.01" not in steps


def test_instances_count_as_hypernyms(wordnet):
    assert "scientist.n.01" in {
        wordnet.synset(offset).name for offset in wordnet.ancestors("einstein.n.01")
    }


@pytest.mark.parametrize("seed", range(5))
def test_ancestors_equal_a_slow_search(wordnet, seed):
    synsets = list(wordnet)
    for row in np.random.default_rng(seed).integers(len(synsets), size=100):
        assert wordnet.ancestors(synsets[row]) == slow_distances(wordnet, synsets[row])


def test_senses_stand_in_order(wordnet):
    names = [synset.name for synset in wordnet.synsets("dog")]
    assert names[:3] == ["dog.n.01", "frump.n.01", "dog.n.03"]
    assert names[-1] == "andiron.n.01"
    assert [s.lexname for s in wordnet.synsets("dalmatian")] == ["noun.person", "noun.animal"]
    for synset in list(wordnet)[::500]:
        lemma = synset.lemmas[0].lower()
        assert wordnet.synset(f"{lemma}.n.{synset.number}") is synset
        assert synset in wordnet.synsets(lemma)


@pytest.mark.parametrize(
    ("name", "synset"),
    [
        ("Polar Bear", "ice_bear.n.01"),
        ("polar_bear", "ice_bear.n.01"),
        ("POLAR-BEARS", "ice_bear.n.01"),
        ("polar+bear", "ice_bear.n.01"),
        ("frigatebird", "frigate_bird.n.01"),
        ("whip poor will", "whippoorwill.n.01"),
        ("Clark Nutcracker", "clark's_nutcracker.n.01"),
        ("Clark’s nutcracker", "clark's_nutcracker.n.01"),
        ("Brabançon griffon", "brabancon_griffon.n.01"),
        ("geese", "goose.n.01"),
        ("mice", "mouse.n.01"),
        ("wolves", "wolf.n.01"),
        ("Canada Geese", "honker.n.03"),
        ("zebras", "zebra.n.01"),
        ("foxes", "fox.n.01"),
        ("finches", "finch.n.01"),
        ("ponies", "pony.n.01"),
        ("firemen", "fireman.n.01"),
        ("glasses", "spectacles.n.01"),
    ],
)
def test_spellings_and_plurals(wordnet, name, synset):
    assert wordnet.synsets(name)[0].name == synset


def test_unknown_words_have_no_senses(wordnet):
    for name in ("zzzebra", "", "!!", "s", "ss"):
        assert all("zebra" not in synset.lemmas for synset in wordnet.synsets(name))
    assert wordnet.synsets("zzzebra") == wordnet.synsets("") == []


# -- class names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hint", "sense", "found_by"),
    [
        ("dalmatian", None, "dalmatian.n.01", "dalmatian"),
        ("dalmatian", "animal", "dalmatian.n.02", "dalmatian"),
        ("otter", "noun.animal", "otter.n.02", "otter"),
        ("banana", ["animal", "food"], "banana.n.02", "banana"),
        ("orange", ["plant", "food"], "orange.n.03", "orange"),
        ("orange", ["food", "plant"], "orange.n.01", "orange"),
        ("zebra", "food", "zebra.n.01", "zebra"),
        ("dolphins", "animal", "dolphin.n.02", "dolphins"),
        ("animal", "animal", "animal.n.01", "animal"),
        ("001.Black_footed_Albatross", None, "black-footed_albatross.n.01", None),
        ("003.Sooty_Albatross", "animal", "albatross.n.02", "albatross"),
        ("12 zebra", None, "zebra.n.01", "zebra"),
        ("7) Zebra", None, "zebra.n.01", "zebra"),
        ("n02110341-dalmatian", None, "dalmatian.n.02", "n02110341"),
        ("n99999999-dalmatian", None, "dalmatian.n.01", "dalmatian"),
    ],
)
def test_find_sense(name, hint, sense, found_by):
    found = find_sense(name, hint=hint)
    assert found.synset.name == sense
    assert found.found_by == (found_by or "black footed albatross")
    assert found.synset in found.candidates


def test_a_number_is_not_a_word():
    with pytest.raises(ValueError, match="WordNet does not know 'zebrra 1'"):
        find_sense("zebrra 1")


# -- embeddings -------------------------------------------------------------------------------


def test_formula_against_a_slow_search(wordnet):
    synsets = list(wordnet)
    rng = np.random.default_rng(0)
    senses = {f"c{i}": synsets[row].id for i, row in enumerate(rng.choice(82115, 40, False))}
    table, report = hierarchy_embeddings(senses, senses=senses)
    assert report["synset"].to_dict() == senses
    distances = {key: slow_distances(wordnet, wordnet.synset(s)) for key, s in senses.items()}
    kept = []
    for offset in sorted(set().union(*distances.values())):
        column = [1 / (1 + d[offset]) if offset in d else 0 for d in distances.values()]
        if len(set(column)) > 1:
            kept.append(wordnet.synset(offset).name)
            np.testing.assert_array_equal(table.to_frame()[kept[-1]], column)
    assert table.columns == tuple(kept)
    assert table.name == "hie"


def test_small_table():
    table, report = hierarchy_embeddings(["zebra", "horse"], name="wordnet")
    assert table.columns == ("horse.n.01", "zebra.n.01")
    np.testing.assert_array_equal(table.vectors, [[0, 1], [1, 0]])
    assert table.name == "wordnet"
    assert report.index.name == "class"
    assert report.columns.tolist() == ["synset", "sense", "found_by", "candidates", "ambiguous"]
    assert report.loc["zebra"].tolist() == [
        "n02391049",
        "zebra.n.01",
        "zebra",
        "zebra.n.01 (noun.animal): zebra",
        False,
    ]
    assert report.loc["horse", "ambiguous"]
    assert "; knight.n.02 (noun.artifact): knight, horse" in report.loc["horse", "candidates"]


def test_one_class_keeps_its_columns():
    table, _ = hierarchy_embeddings(["zebra"])
    assert {"entity.n.01", "zebra.n.01"} <= set(table.columns)
    assert table["zebra"].max() == 1


def test_the_same_every_time_and_in_any_order():
    names = ["zebra", "otter", "dalmatian", "oak", "teapot"]
    table, report = hierarchy_embeddings(names, hint="animal")
    again, same_report = hierarchy_embeddings(np.array(names), hint=["animal"])
    assert table == again
    assert report.equals(same_report)
    turned, _ = hierarchy_embeddings(names[::-1], hint="animal")
    assert turned.select(names) == table


def test_nearer_kin_are_more_alike():
    unit = hierarchy_embeddings(["zebra", "horse", "trout", "teapot"], hint="animal")[0].l2()
    horse, trout, teapot = unit.vectors[1:] @ unit["zebra"]
    assert horse > trout > teapot > 0


def test_classes_of_one_synset_are_warned_of():
    names = ["Laysan albatross", "sooty albatross", "zebra"]
    expected = r"'Laysan albatross', 'sooty albatross' \(albatross.n.02\). Tell them apart"
    with pytest.warns(UserWarning, match=expected) as record:
        table, report = hierarchy_embeddings(names, hint="animal")
    assert record[0].filename == __file__
    np.testing.assert_array_equal(table[names[0]], table[names[1]])
    assert report["found_by"].tolist() == ["albatross", "albatross", "zebra"]
    with pytest.warns(UserWarning, match="same vector"):
        alone, _ = hierarchy_embeddings(names[:2], hint="animal")
    assert alone.n_dimensions > 5  # all columns are the same for both, so all are kept


def test_many_groups_of_twins_are_cut_short():
    birds = ["albatross", "auklet", "cormorant", "kingfisher", "pelican", "pipit", "vireo"]
    names = [f"{kind} {bird}" for bird in birds for kind in ("unheard", "unseen")]
    with pytest.warns(UserWarning, match="and 2 more groups. Tell"):
        hierarchy_embeddings(names, hint="animal")


# -- given senses -----------------------------------------------------------------------------


def test_senses_by_dict_and_by_file(tmp_path):
    names = ["Dalmatian", "gadwall", "zebra"]
    senses = {"Dalmatian": "n02110341", "gadwall": "duck.n.01"}
    table, report = hierarchy_embeddings(names, senses=senses)
    assert report["sense"].tolist() == ["dalmatian.n.02", "duck.n.01", "zebra.n.01"]
    assert report["found_by"].tolist() == ["(given)", "(given)", "zebra"]
    assert report["ambiguous"].tolist() == [False, False, False]
    assert "noun.person" in report.loc["Dalmatian", "candidates"]
    assert report.loc["gadwall", "candidates"] == ""
    for text in (
        "class,synset\nDalmatian,n02110341\ngadwall,duck.n.01\n",
        "\ufeffclass;synset\r\nDalmatian;n02110341\r\n\r\ngadwall;duck.n.01\r\n",
        'note\tsynset\tclass\n"a, b"\tn02110341\tDalmatian\n\tduck.n.01\tgadwall\n',
    ):
        path = tmp_path / "senses.csv"
        path.write_bytes(text.encode())
        assert hierarchy_embeddings(names, senses=path)[0] == table
        assert hierarchy_embeddings(names, senses=str(path))[0] == table


def test_the_saved_report_is_a_file_of_senses(tmp_path):
    names = ["dalmatian", "otter", "zebra"]
    table, report = hierarchy_embeddings(names, hint="animal")
    report.to_csv(tmp_path / "report.csv")
    again, fixed = hierarchy_embeddings(names, senses=tmp_path / "report.csv")
    assert again == table
    assert not fixed["ambiguous"].any()


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("n00000001", "WordNet has no synset 'n00000001'; give an id such as 'n02391049'"),
        (12345, "WordNet has no synset 12345; give an id"),
        ("zebra", r"no synset 'zebra'; it has zebra.n.01 \(noun.animal\): zebra; give"),
        ("zebra.n.02", r"no synset 'zebra.n.02'; it has zebra.n.01 \(noun"),
        ("run.v.01", "a name such as 'zebra.n.01' or an offset"),
        ("", "no synset ''; give"),
    ],
)
def test_unknown_synsets(wordnet, key, message):
    with pytest.raises(ValueError, match=message):
        wordnet.synset(key)
    with pytest.raises(ValueError, match=f"senses, class 'a b': .*{message}"):
        hierarchy_embeddings(["a b"], senses={"a b": key})


def test_unknown_names_are_listed_together_with_near_spellings():
    with pytest.raises(ValueError, match="WordNet does not know") as error:
        hierarchy_embeddings(["zebrra", "horse", "046.Gadwall", "sooty albatros", "!!"])
    text = str(error.value)
    assert "'zebrra' (near: zebra" in text
    assert "'046.Gadwall'" in text
    assert "'sooty albatros' (near: albatross" in text
    assert "; '!!'. Rename such classes or give their synsets" in text
    assert "senses={'zebrra': 'animal.n.01'}" in text
    assert "horse'" not in text


@pytest.mark.parametrize(
    ("names", "options", "error", "message"),
    [
        ("zebra", {}, TypeError, "a list of names, not the one name 'zebra'"),
        (["zebra", 3], {}, TypeError, "names that are words, not 3 of type int"),
        ([], {}, ValueError, "at least one class name"),
        (["zebra", "zebra"], {}, ValueError, "Class 'zebra' is listed twice"),
        (
            ["zebra"],
            {"hint": "beast"},
            ValueError,
            "no kind 'beast'; hint may be Tops, act, animal",
        ),
        (["zebra"], {"hint": ["food", 3]}, ValueError, "no kind 3; hint may be"),
        (["zebra"], {"senses": {"okapi": 1}}, ValueError, "not among the names: 'okapi'; correct"),
        (["zebra"], {"senses": ["a"]}, TypeError, "a CSV's path, not list"),
        (["zebra"], {"senses": "none.csv"}, FileNotFoundError, "no file of senses 'none.csv'"),
    ],
)
def test_bad_arguments(names, options, error, message):
    with pytest.raises(error, match=message):
        hierarchy_embeddings(names, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"name,id\nzebra,n02391049\n", "needs columns 'class' and 'synset', but has 'name', 'id'"),
        (b"", "but has none"),
        (
            b"class,synset\nzebra,n02391049\nzebra,n02391049\n",
            "line 3: class 'zebra' is listed twice",
        ),
        (b"class,synset\nzebra,n1\n", "senses.csv, class 'zebra': WordNet has no synset 'n1'"),
        (b"class,synset\nzebra\n", "class 'zebra': WordNet has no synset ''"),
        (b"class,synset\nokapi,n02391049\n", "senses.csv names classes that are not among"),
        (b"class,synset\n\xff\xfe,n02391049\n", "not UTF-8 text"),
    ],
)
def test_bad_files_of_senses(tmp_path, text, message):
    path = tmp_path / "senses.csv"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=message) as error:
        hierarchy_embeddings(["zebra"], senses=path)
    assert "senses.csv" in str(error.value)


def test_cells_that_are_too_long(tmp_path):
    (tmp_path / "senses.csv").write_text(f"class,synset\nzebra,{'x' * 200_000}\n")
    with pytest.raises(ValueError, match=r"senses\.csv, line 2: field larger than field limit"):
        hierarchy_embeddings(["zebra"], senses=tmp_path / "senses.csv")


def test_very_long_names_take_no_time():
    load_wordnet()
    long = "word " * 50_000
    start = time.perf_counter()
    assert find_sense(long + "zebra").synset.name == "zebra.n.01"
    assert time.perf_counter() - start < 5
    with pytest.raises(ValueError, match="WordNet does not know 'word word ") as error:
        find_sense(long + "xyzzy")
    assert len(str(error.value)) < 300


def test_the_longest_known_names_are_found(wordnet):
    for lemma in sorted((w for s in wordnet for w in s.lemmas), key=len)[-20:]:
        assert find_sense(f"the {lemma}").candidates == wordnet.synsets(lemma)
