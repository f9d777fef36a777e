"""`latem embed` on the command line."""

import numpy as np
import pytest
from typer.testing import CliRunner

from latem import ClassEmbeddings
from latem.cli import app


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("zebra\nblue jay\n\n003.Polar_Bear\n")
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["embed", *map(str, arguments)])


def test_words(names, tmp_path):
    (tmp_path / "vectors.txt").write_text("zebra 1 0\nblue_jay 0 2\nbear 3 3\nblue 9 9\n")
    out, report = tmp_path / "w2v.csv", tmp_path / "report.csv"
    result = run(
        "classes", names, "--kind", "w2v", "--vectors", tmp_path / "vectors.txt",
        "--out", out, "--report", report,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "1 of 3 names were found by some of their words only: 003.Polar_Bear" in result.output
    table = ClassEmbeddings.read(out)
    assert table["blue jay"].tolist() == [0, 2]
    assert table["003.Polar_Bear"].tolist() == [3, 3]
    assert "003.Polar_Bear,bear,polar,words" in report.read_text()


def test_hierarchy_and_its_corrected_report(names, tmp_path):
    out, report = tmp_path / "hie.csv", tmp_path / "report.csv"
    result = run("classes", names, "--kind", "hie", "--out", out, "--report", report)
    assert result.exit_code == 0, result.output
    assert ClassEmbeddings.read(out).names.tolist() == ["zebra", "blue jay", "003.Polar_Bear"]
    report.write_text(report.read_text().replace("n02391049", "n02374451"))  # zebra → horse
    result = run("classes", names, "--kind", "hie", "--out", out, "--senses", report)
    assert result.exit_code == 0, result.output
    assert ClassEmbeddings.read(out).to_frame().loc["zebra", "horse.n.01"] == 1


def test_attributes_are_selected(names, tmp_path):
    (tmp_path / "traits.csv").write_text(
        "class,a,b\nblue jay,1,2\nzebra,3,4\nokapi,5,6\n003.Polar_Bear,7,8\n"
    )
    arguments = ("--attributes", tmp_path / "traits.csv", "--out", tmp_path / "att.csv")
    result = run("classes", names, "--kind", "att", *arguments)
    assert result.exit_code == 0, result.output
    table = ClassEmbeddings.read(tmp_path / "att.csv")
    assert table.names.tolist() == ["zebra", "blue jay", "003.Polar_Bear"]
    np.testing.assert_array_equal(table.vectors, [[3, 4], [1, 2], [7, 8]])


def test_own_texts_from_start_to_end(tmp_path):
    pytest.importorskip("gensim")
    rng = np.random.default_rng(0)
    topics = [["zebra", "grass", "hoof"], ["blue jay", "feather", "nest"]]
    lines = [" ".join(rng.permutation(topics[i % 2] * 2)) for i in range(400)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    (tmp_path / "names.txt").write_text("zebra\nblue jay\n")
    vectors = tmp_path / "vectors.txt"
    result = run(
        "train-words", tmp_path / "corpus.txt", "--out", vectors, "--dimensions", 8,
        "--names", tmp_path / "names.txt", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "blue_jay " in vectors.read_text()
    out = tmp_path / "w2v.csv"
    result = run(
        "classes", tmp_path / "names.txt", "--kind", "w2v", "--vectors", vectors, "--out", out
    )
    assert result.exit_code == 0, result.output
    assert ClassEmbeddings.read(out).n_dimensions == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "w2v"), "--kind w2v needs --vectors"),
        (("--kind", "att"), "--kind att needs --attributes"),
        (("--kind", "text"), "--kind text needs --descriptions"),
        (("--kind", "w2v", "--vectors", "none.txt"), "There is no file of word vectors 'none.txt'"),
        (("--kind", "hie", "--vectors", "none.txt"), "--vectors does not go with --kind hie"),
        (
            ("--kind", "hie", "--report", "no/such/r.csv"),
            "There is no folder 'no/such' to write r.csv in",
        ),
        (("--kind", "hie", "--hint", "beast"), "WordNet has no kind 'beast'"),
    ],
)
def test_failures_leave_nothing(names, tmp_path, arguments, message):
    result = run("classes", names, *arguments, "--out", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert message in result.output.replace("\n", " ")
    assert not (tmp_path / "out.csv").exists()


def test_misuse(names, tmp_path):
    assert run("classes", names, "--kind", "nonsense", "--out", "x.csv").exit_code == 2
    result = run("classes", names, "--kind", "hie", "--out", tmp_path / "x.xlsx")
    assert "written as .csv" in result.output
    (tmp_path / "empty.txt").write_text("\n")
    result = run("classes", tmp_path / "empty.txt", "--kind", "hie", "--out", tmp_path / "x.csv")
    assert "holds no class names" in result.output
    result = run("classes", tmp_path / "no.txt", "--kind", "hie", "--out", tmp_path / "x.csv")
    assert "no file of class names" in result.output
