"""Planning names the trainings, summarising reads them, and neither does the other's work."""

from dataclasses import replace

import numpy as np
import pytest

from latem import ClassEmbeddings, make_latent_world, random_class_splits
from latem.experiments.cells import Cells, NotTrainedError
from latem.experiments.fits import Outcome, run_fit
from latem.experiments.plan import plan
from latem.experiments.store import Store
from latem.experiments.summary import summarise
from latem.experiments.tables import (
    Column,
    PaperDataset,
    PaperTable,
    Protocols,
    Recipe,
    Row,
    read_protocols,
)


def small_world():
    """A dataset with five splits."""
    world = make_latent_world(n_seen=16, n_unseen=5, n_images=6, n_features=12, random_state=0)
    drawn = random_class_splits(world.classes.tolist(), (11, 5, 5), n=4)
    splits = {f"random{i}": split for i, split in enumerate(drawn, start=1)}
    return replace(world, splits={"standard": world.split(), **splits})


def one_cell(recipe, splits="standard"):
    """Protocols of a table with a single number."""
    column = Column("CUB", "ours", recipe.name, {"att": 50.0})
    table = PaperTable(
        "t", "Table", "", "accuracy", splits=splits, rows=(Row("att", ("att",)),), columns=(column,)
    )
    return Protocols({"t": table}, {recipe.name: recipe}, {"CUB": PaperDataset("CUB", (), 0.1)})


class Made:
    """A store of made-up outcomes that knows what was asked for."""

    def __init__(self, datasets):
        self.datasets, self.done, self.asked = datasets, {}, []

    def get(self, fit):
        self.asked.append(fit)
        return self.done.get(fit)

    def put(self, fit):
        rng = np.random.default_rng(len(self.done))
        data = self.datasets[fit.dataset]
        result = {
            "accuracy": rng.random(), "n_maps": 2, "map_usage": [[0.5, 0.5]], "maps_by_epoch": [2],
            "by_epoch": {str(n): rng.random() for n in (10, 20, 50, 100, 150)},
            "top_images": [[], []], "per_class": {"a": 1.0}, "confusion": [[1]],
        }  # fmt: skip
        images, classes = data.testing(), data.split().test
        if fit.part == "train":
            images, classes = data.validation(), data.split().val
        shape = len(images[1]), len(classes)
        self.done[fit] = Outcome(result, rng.random(shape) if fit.keeps_scores else None)


def test_choices_come_before_the_models_that_need_them(tmp_path):
    world = small_world()
    recipe = Recipe(
        "r", "SJE", {}, {"learning_rate": (0.1, 1.0), "n_epochs": (1, 2)}, {"margin": (0.5, 1.0)}
    )
    protocols = one_cell(recipe, splits="five")
    store = Store(tmp_path, {"CUB": "digest"}, "code")
    cells = Cells({"CUB": world}, protocols, store)
    rounds = []
    while (planned := plan(cells, protocols.tables)).missing:
        rounds.append(planned)
        for fit in planned.missing:
            store.put(fit, run_fit(fit, world))
    # two steps, each watched at both epochs; then two margins on each of five splits; then models
    assert [len(one.missing) for one in rounds] == [2, 10, 5]
    assert [len(one.waiting) for one in rounds] == [5, 5, 0]
    assert [one.n_known for one in rounds] == [7, 17, 17]
    assert {fit.part for fit in rounds[1].missing} == {"train"}
    assert {fit.part for fit in rounds[2].missing} == {"all"}
    assert (len(planned.used), planned.waiting) == (17, frozenset())
    summary = summarise(cells, protocols.tables, {})
    assert summary["tables"][0]["cells"][0][0]["ours"] is not None


def test_planning_changes_nothing(tmp_path):
    protocols = one_cell(Recipe("r", "LatEm", {"n_epochs": 1}, {}, {"n_maps": (1, 2)}))
    cells = Cells({"CUB": small_world()}, protocols, Store(tmp_path, {"CUB": "digest"}, "code"))
    assert plan(cells, protocols.tables) == plan(cells, protocols.tables)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trained", ["nothing", "the choices"])
def test_a_summary_of_missing_trainings_is_an_error(tmp_path, trained):
    world = small_world()
    protocols = one_cell(Recipe("r", "LatEm", {"n_epochs": 1}, {}, {"n_maps": (1, 2)}))
    store = Store(tmp_path, {"CUB": "digest"}, "code")
    cells = Cells({"CUB": world}, protocols, store)
    if trained == "the choices":
        for fit in plan(cells, protocols.tables).missing:
            store.put(fit, run_fit(fit, world))
    with pytest.raises(NotTrainedError, match="r on CUB att, standard is not trained yet"):
        summarise(cells, protocols.tables, {})


@pytest.mark.parametrize("name", [None, *read_protocols().tables])
@pytest.mark.parametrize("chosen", [(), ("CUB",)])
def test_plan_and_summary_agree_for_every_table(name, chosen):
    """What is planned is read, and what is read was planned."""
    world = small_world()
    table = world.embeddings["att"]
    tables = {
        key: ClassEmbeddings(table.names, table.vectors, name=key)
        for key in ("att", "w2v", "glo", "hie")
    }
    words = {key: tables[key] for key in ("w2v", "hie")}
    datasets = {"CUB": replace(world, embeddings=tables), "Dogs": replace(world, embeddings=words)}
    protocols = read_protocols()
    wanted = {key: t for key, t in protocols.tables.items() if name in (None, key)}
    store = Made(datasets)
    cells = Cells(datasets, protocols, store, choose_step=chosen)
    while (planned := plan(cells, wanted)).missing:
        for fit in planned.missing:
            store.put(fit)
    store.asked.clear()
    summarise(cells, wanted, {})
    assert set(store.asked) == set(planned.used) == set(store.done)
    assert bool(store.done) == (name != "table1")


def combined(recipe, fusion):
    """Protocols of a table with each of two embeddings, and one with both combined."""
    column = Column("CUB", "ours", recipe.name, {"att": 50.0, "glo": 40.0, "both": 60.0})
    rows = Row("att", ("att",)), Row("glo", ("glo",))
    both = (Row("both", ("att", "glo"), fusion),)
    tables = {
        "alone": PaperTable("alone", "Table", "", "accuracy", rows=rows, columns=(column,)),
        "both": PaperTable("both", "Table", "", "accuracy", rows=both, columns=(column,)),
    }
    return Protocols(tables, {recipe.name: recipe}, {"CUB": PaperDataset("CUB", (), 0.1)})


def two_tables(world):
    rng = np.random.default_rng(0)
    table = world.embeddings["att"]
    glo = ClassEmbeddings(table.names, rng.normal(size=(len(table.names), 6)), name="glo")
    return replace(world, embeddings={"att": table, "glo": glo})


def train_all(cells, tables, world):
    n = 0
    while missing := plan(cells, tables).missing:
        for fit in missing:
            cells.store.put(fit, run_fit(fit, world))
        n += len(missing)
    return n


@pytest.mark.parametrize(
    ("recipe", "fusion", "more"),
    [
        (Recipe("r", "LatEm", {"n_epochs": 1}, {}, {"n_maps": (1, 2)}), "chosen", []),
        (Recipe("r", "SJE", {}, {"n_epochs": (1, 2)}), "chosen", ["train", "train"]),
        (Recipe("r", "SJE", {}, {"n_epochs": (1, 2)}), "mean", []),
    ],
)
def test_trainings_of_members_serve_their_combination(tmp_path, recipe, fusion, more):
    """Weights are chosen with the trainings that chose parameters, where these were whole ones."""
    world = two_tables(small_world())
    protocols = combined(recipe, fusion)
    cells = Cells({"CUB": world}, protocols, Store(tmp_path, {"CUB": "digest"}, "code"))
    train_all(cells, {"alone": protocols.tables["alone"]}, world)
    both = {"both": protocols.tables["both"]}
    assert [fit.part for fit in plan(cells, both).missing] == more
    train_all(cells, both, world)
    (entry,) = protocols.tables["both"].entries()
    assert cells.accuracy(entry).value > 0


def test_a_combination_waits_for_its_weights(tmp_path):
    world = two_tables(small_world())
    protocols = combined(Recipe("r", "SJE", {}, {"n_epochs": (1, 2)}), "chosen")
    cells = Cells({"CUB": world}, protocols, Store(tmp_path, {"CUB": "digest"}, "code"))
    train_all(cells, {"alone": protocols.tables["alone"]}, world)
    (entry,) = protocols.tables["both"].entries()
    with pytest.raises(NotTrainedError, match="standard, without val classes is not trained yet"):
        cells.accuracy(entry)


def test_choices_do_not_look_at_test_classes(tmp_path):
    """Shuffled test labels change accuracies, and nothing that was trained."""
    world = small_world()
    labels = world.labels.copy()
    rows = world.rows(world.split().test)
    labels[rows] = np.random.default_rng(0).permutation(labels[rows])
    protocols = one_cell(Recipe("r", "LatEm", {"n_epochs": 2}, {}, {"n_maps": (1, 2, 3)}))
    used = []
    for name, dataset in (("a", world), ("b", replace(world, labels=labels))):
        store = Store(tmp_path / name, {"CUB": "the same"}, "code")
        cells = Cells({"CUB": dataset}, protocols, store)
        while (planned := plan(cells, protocols.tables)).missing:
            for fit in planned.missing:
                store.put(fit, run_fit(fit, dataset))
        used.append(planned.used)
    assert used[0] == used[1]


def test_weights_do_not_look_at_test_classes(tmp_path):
    world = two_tables(small_world())
    labels = world.labels.copy()
    rows = world.rows(world.split().test)
    labels[rows] = np.random.default_rng(0).permutation(labels[rows])
    protocols = combined(Recipe("r", "LatEm", {"n_epochs": 3}, {}, {"n_maps": (1,)}), "chosen")
    (entry,) = protocols.tables["both"].entries()
    numbers = []
    for name, dataset in (("a", world), ("b", replace(world, labels=labels))):
        store = Store(tmp_path / name, {"CUB": "the same"}, "code")
        cells = Cells({"CUB": dataset}, protocols, store)
        train_all(cells, protocols.tables, dataset)
        numbers.append(cells.accuracy(entry))
    assert numbers[0].note == numbers[1].note != "weights att 0.5, glo 0.5"
    assert numbers[0].value != numbers[1].value
