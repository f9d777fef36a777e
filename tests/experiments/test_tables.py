"""The paper's numbers and protocols as they are read from their files."""

from dataclasses import replace

import pytest

from latem.experiments import tables
from latem.experiments.tables import read_protocols


def test_tables_hold_the_published_numbers():
    published = read_protocols().tables
    assert list(published)[:2] == ["table1", "table2"]
    assert len(published) == 10
    by_place = {(c.dataset, c.name): c.published for c in published["table2"].columns}
    assert by_place["CUB", "LatEm"]["att"] == 45.5
    assert by_place["Dogs", "SJE"] == {"w2v": 19.6, "glo": 17.8, "hie": 24.3}
    numbers = {name: sum(len(c.published) for c in t.columns) for name, t in published.items()}
    assert numbers["table2"] == numbers["table4"] == numbers["table5_right"] == 22
    assert numbers["table3"] == 10
    assert numbers["appendix_a"] == 45
    assert numbers["appendix_b"] == 40
    right = {(c.dataset, c.name): c.published for c in published["table5_right"].columns}
    five = {(c.dataset, c.name): c.published for c in published["table4"].columns}
    for dataset in ("CUB", "AWA", "Dogs"):  # the paper gives these numbers twice
        assert right[dataset, "CV"] == five[dataset, "LatEm"]


def test_a_row_beside_another_combines_the_same_in_another_way():
    for name, ways in (("table3", {"chosen", "mean"}), ("appendix_b", {"early", "chosen", "mean"})):
        table = read_protocols().tables[name]
        rows = {row.name: row for row in table.rows}
        for row in rows.values():
            for column in table.columns:
                entry = table.cell(row, column)
                if row.beside:
                    other = table.cell(rows[row.beside], column)
                    alone = other is None or other.fusion == "early"
                    assert (entry is None) == alone
                    assert entry is None or entry == replace(other, fusion="mean")
                    assert row.name not in column.published
        assert {entry.fusion for entry in table.entries()} == ways


def content(**changed):
    return {
        "id": "t", "title": "T", "caption": "", "kind": "accuracy",
        "row": [{"name": "all", "embeddings": ("att", "glo"), "fusion": "chosen"}],
        "column": [{"dataset": "CUB", "name": "c", "recipe": "SJE", "published": {"all": 1.0}}],
        **changed,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"row": [{"name": "all", "embeddings": (), "fusion": "late"}]},
            r"unknown ways \['late'\]",
        ),
        ({"splits": "five"}, "combines scores over five splits"),
        ({"row": [{"name": "all", "embeddings": (), "beside": "al"}]}, "beside 'al', which it lac"),
        ({"row": []}, "published numbers for unknown rows"),
    ],
)
def test_mistakes_in_a_table_are_named(changed, message):
    assert tables._table(content()).rows[0].fusion == "chosen"
    with pytest.raises(ValueError, match=message):
        tables._table(content(**changed))


def test_known_datasets():
    assert {key: d.learning_rate for key, d in read_protocols().datasets.items()} == {
        "CUB": 0.1, "AWA": 0.001, "Dogs": 0.01
    }  # fmt: skip


def test_files_are_read_once(monkeypatch):
    read, names = tables.read_toml, []
    monkeypatch.setattr(tables, "read_toml", lambda path: names.append(path.name) or read(path))
    read_protocols.cache_clear()
    first = read_protocols()
    assert read_protocols() is first
    assert names.count("protocols.toml") == 1
    assert len(names) == len(set(names)) == 1 + len(first.tables)


def test_what_is_read_cannot_be_changed():
    protocols = read_protocols()
    recipe = protocols.recipes["SJE"]
    curve = protocols.tables["figure3"]
    for mapping in (
        protocols.tables, protocols.recipes, protocols.datasets, recipe.params, recipe.tune,
        recipe.grid, curve.more, protocols.tables["table1"].more["published"]["CUB"],
        protocols.tables["table2"].columns[0].published,
    ):  # fmt: skip
        with pytest.raises(TypeError):
            mapping["new"] = 1
    assert isinstance(recipe.tune["n_epochs"], tuple)
    assert isinstance(curve.more["n_maps"], tuple)
    assert isinstance(curve.more["embeddings"], tuple)


def test_fewer_epochs_leave_the_protocols_alone():
    protocols = read_protocols()
    quick = protocols.with_epochs(20)
    assert quick.recipes["LatEm"].params["n_epochs"] == 20
    assert quick.recipes["SJE"].tune["n_epochs"] == (10, 20)
    assert quick.recipes["DAP"] == protocols.recipes["DAP"]
    assert protocols.recipes["LatEm"].params["n_epochs"] == 150
    with pytest.raises(TypeError):
        quick.recipes["LatEm"].params["n_epochs"] = 1
