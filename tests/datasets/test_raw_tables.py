"""Raw traits in a dataset folder that was made by hand."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import latem
from latem import ClassEmbeddings, read_folder, write_folder
from latem.cli.main import app
from latem.datasets import check_folder, inspect_folder

RAW = """class,weight,diet,legs,tail
ant,0.01 g,seeds; leaves,6,
bee,0.1 g,nectar,6,no
cat,4000 g,meat,4,yes
dog,20000 g,meat; leaves,4,yes
eel,3000 g,meat,0,?
fox,6000 g,meat; leaves,4,yes
gnu,200000 g,leaves,4,yes
"""
NAMES = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu"]


@pytest.fixture
def folder(tmp_path):
    """Made with an editor, but for the features."""
    made = tmp_path / "d"
    (made / "embeddings").mkdir(parents=True)
    (made / "splits").mkdir()
    (made / "dataset.toml").write_text('name = "pets"\n')
    np.save(made / "features.npy", np.random.default_rng(0).normal(size=(28, 6)))
    lines = [f"{name}{i}.jpg,{name}" for name in NAMES for i in range(4)]
    (made / "images.csv").write_text("\n".join(["image,class", *lines, ""]))
    (made / "embeddings" / "att.csv").write_text(RAW)
    (made / "splits" / "standard.toml").write_text(
        'train = ["ant", "bee", "cat"]\nval = ["dog"]\ntest = ["eel", "fox", "gnu"]\n'
    )
    return made


def test_it_is_read_as_the_option_table_reads_it(folder, tmp_path):
    (tmp_path / "att.csv").write_text(RAW)
    found = read_folder(folder).embeddings["att"]
    expected = ClassEmbeddings.from_traits(tmp_path / "att.csv")
    assert found == expected
    assert found.encoding == expected.encoding is not None
    np.savez(
        tmp_path / "a.npz",
        features=np.load(folder / "features.npy"),
        labels=read_folder(folder).labels,
    )
    options = ["--table", str(tmp_path / "att.csv"), "--out", str(tmp_path / "converted")]
    done = CliRunner().invoke(app, ["data", "convert", "npz", str(tmp_path / "a.npz"), *options])
    assert done.exit_code == 0, done.output
    assert read_folder(tmp_path / "converted").embeddings["att"] == found


def test_it_says_so(folder):
    dataset = read_folder(folder)
    first, *rest = dataset.table_notes["att"]
    assert f"{folder / 'embeddings' / 'att.csv'} holds raw traits" in first
    assert rest == list(dataset.embeddings["att"].encoding.notes)
    assert check_folder(folder) == []
    assert inspect_folder(folder).warnings == [first, *rest]


@pytest.mark.filterwarnings("ignore::latem.GridEdgeWarning")  # few classes, any penalty
def test_training_and_naming_new_classes(folder, tmp_path):
    options = ["--embedding", "att", "--model", "ESZSL", "--out", str(tmp_path / "m"), "-q"]
    done = CliRunner().invoke(app, ["train", str(folder), *options])
    assert done.exit_code == 0, done.output
    assert "holds raw traits, which are turned into numbers as --table does" in done.stderr
    assert "'tail' is yes or no" in done.stderr
    model = latem.load(tmp_path / "m")
    (tmp_path / "new.csv").write_text(
        "class,weight,diet,legs,tail\nhen,2000 g,seeds,2,yes\nowl,900 g,meat,2,yes\n"
    )
    X = np.load(folder / "features.npy")
    assert set(model.predict(X, classes=tmp_path / "new.csv")) <= {"hen", "owl"}


def test_written_again_it_is_encoded(folder, tmp_path):
    dataset = read_folder(folder)
    again = read_folder(write_folder(dataset, tmp_path / "copy"))
    assert again.embeddings["att"] == dataset.embeddings["att"]
    assert again.table_notes == {}  # told when it was done
    assert inspect_folder(tmp_path / "copy").warnings == []


def test_tables_of_numbers_stay_as_they_are(folder):
    rows = [f"{name},{i},{1000 * i * i + 1}" for i, name in enumerate(NAMES)]
    (folder / "embeddings" / "att.csv").write_text("\n".join(["class,a,b", *rows, ""]))
    dataset = read_folder(folder)
    assert dataset.embeddings["att"].encoding is None
    assert dataset.embeddings["att"].vectors[2].tolist() == [2, 4001]
    assert dataset.table_notes == {}


def test_a_slip_among_numbers_is_no_trait(folder):
    text = RAW.replace("fox,6000 g,meat; leaves,4,yes", "fox,6000 g,meat; leaves,four,yes")
    (folder / "embeddings" / "att.csv").write_text(text)
    with pytest.raises(ValueError, match=r"att\.csv: .* class 'fox', column 'legs' holds 'four'"):
        read_folder(folder)
    assert any("holds 'four'" in problem for problem in check_folder(folder))


def test_an_encoding_beside_raw_traits_is_told(folder):
    """The numbers that it made are gone: what was meant cannot be known."""
    encoding = read_folder(folder).embeddings["att"].encoding.to_dict()
    (folder / "embeddings" / "att.traits.json").write_text(json.dumps(encoding))
    with pytest.raises(ValueError, match=r"att\.traits\.json says .* delete it"):
        read_folder(folder)
