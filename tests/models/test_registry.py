"""One list of models; and a stranger's model is treated like ours."""

import re
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
from helpers import REPOSITORY
from typer.testing import CliRunner

import latem
from latem import ESZSL, FileFormatError, HeldOutSearch, LateFusion, ModelRow, make_latent_world
from latem.cli import app
from latem.datasets import write_folder
from latem.models import model_rows
from latem.models.registry import MODELS
from latem.models.table_model import TableClassifier
from latem.selection import GRIDS
from latem.workflows.train import train_model

PAGE = REPOSITORY / "docs" / "adding-a-model.md"


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_images=8, random_state=0)


@pytest.fixture
def registry(monkeypatch):
    """Rows that are added are gone after the test."""
    monkeypatch.setattr(model_rows, "_ROWS", dict(model_rows._ROWS))


@pytest.fixture
def stranger(registry):
    """The page's example, run as it stands there."""
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 32
    module = types.ModuleType("stranger")
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    return module.NearestMean


def test_every_row_leads_to_its_class_and_back():
    for row in MODELS:
        kind = row.load()
        assert kind.__name__ == row.name
        assert kind.__module__ == row.module
        assert getattr(latem, row.name) is kind
        assert set(row.grid) <= set(kind([]).get_params(deep=False))
        assert row.name in latem.__all__
    assert {row.name for row in model_rows.own_rows()} - {row.name for row in MODELS} == {
        "CommitteeCV",
        "HeldOutSearch",
        "LatEmCV",
    }


def test_all_models_of_the_room_have_a_row():
    import importlib
    import pkgutil

    import latem.models

    for found in pkgutil.iter_modules(latem.models.__path__, "latem.models."):
        module = importlib.import_module(found.name)
        for name, kind in vars(module).items():
            if not isinstance(kind, type) or kind.__module__ != module.__name__:
                continue
            concrete = not getattr(kind, "__abstractmethods__", True)
            if issubclass(kind, TableClassifier) and concrete and not name.startswith("_"):
                assert model_rows.find(name).module == module.__name__


def test_public_names_of_type_checkers_are_those_of_the_registry():
    text = (REPOSITORY / "src" / "latem" / "__init__.py").read_text(encoding="utf-8")
    listed = text[text.index("if TYPE_CHECKING") : text.index("for _row")]
    for row in model_rows.own_rows():
        assert re.search(rf"\b{row.name}\b", listed), row.name
        assert f'"{row.name}"' in text


def test_the_usual_grids_are_the_registry_s():
    assert GRIDS["ESZSL"] is model_rows.find("ESZSL").grid
    assert "LateFusion" not in GRIDS
    assert set(GRIDS) == {row.name for row in MODELS if row.grid}
    assert len(GRIDS) == len(list(GRIDS))
    with pytest.raises(KeyError):
        GRIDS["nonsense"]


def test_a_stranger_s_model_is_saved_loaded_searched_evaluated_and_compared(
    stranger, world, tmp_path
):
    X, y = world.training()
    X_new, y_new = world.testing()
    table = world.embeddings["att"]
    model = stranger(table).fit(X, y)
    assert model.score(X_new, y_new) > 0.9
    model.save(tmp_path / "m")
    again = latem.load(tmp_path / "m")
    assert type(again) is stranger
    np.testing.assert_array_equal(
        again.decision_function(X_new, "all"), model.decision_function(X_new, "all")
    )
    search = HeldOutSearch(stranger(table), cv=list(world.split().val)).fit(X, y)
    assert search.best_params_["alpha"] in (0.1, 1.0, 10.0)
    search.save(tmp_path / "search")
    assert type(latem.load(tmp_path / "search").best_estimator_) is stranger
    assert latem.evaluate(model, world, calibrate=True).top_1 > 0.9
    fusion = LateFusion([("own", stranger(table)), ("theirs", ESZSL(table))]).fit(X, y)
    fusion.save(tmp_path / "fusion")
    np.testing.assert_array_equal(
        latem.load(tmp_path / "fusion").predict(X_new, "unseen"), fusion.predict(X_new, "unseen")
    )
    assert model.with_classes({"new": table.vectors[0]}).predict(X_new, ["new"])[0] == "new"
    with pytest.raises(TypeError, match="NearestMean does not add up its scores"):
        latem.explain_predictions(model, X_new)
    done = train_model(world, "att", kind="NearestMean")
    assert set(done.chosen) == {"alpha"}


def test_a_stranger_s_model_on_the_command_line(stranger, world, tmp_path):
    write_folder(world, tmp_path / "data")
    run = CliRunner().invoke(
        app, ["train", str(tmp_path / "data"), "--embedding", "att", "--model", "NearestMean",
              "--out", str(tmp_path / "m"), "-q"]
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "Chosen on held-out classes: alpha" in run.output


def test_maps_of_a_row_make_explanations(stranger, world):
    latem.register(stranger, maps="bilinear")
    stranger.bilinear = property(lambda self: 2 * self.map_.T)
    X, y = world.training()
    model = stranger(world.embeddings["att"], dtype="float64").fit(X, y)
    why = latem.explain_predictions(model, world.testing()[0][:1])[0]
    assert why.contributions.sum() == pytest.approx(why.lead)


def test_an_unregistered_model_says_so(world, tmp_path, stranger, monkeypatch):
    model = stranger(world.embeddings["att"]).fit(*world.training())
    model.save(tmp_path / "m")
    monkeypatch.delitem(model_rows._ROWS, "NearestMean")
    with pytest.raises(
        FileFormatError, match="'NearestMean', which is not registered here; import"
    ):
        latem.load(tmp_path / "m")
    with pytest.raises(TypeError, match=r"latem.register\(NearestMean\) first"):
        model.save(tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_name_cannot_be_taken_twice(registry):
    with pytest.raises(ValueError, match="There is a model 'ESZSL' already"):
        latem.register(ModelRow("ESZSL", "elsewhere"))
    latem.register(ModelRow("ESZSL", "latem.models.eszsl"))  # the same again is nothing new
    with pytest.raises(TypeError, match="options with a class"):
        latem.register(ModelRow("X", "x"), grid={})


def test_a_model_of_an_installed_package_is_found_by_its_entry_point(world, tmp_path):
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S).group(1)
    code = re.sub(r"\nregister\(.*\)\n", "\n", code)
    site = tmp_path / "site"
    site.mkdir()
    row = 'ROW = ModelRow("NearestMean", "strange_models", grid={"alpha": (0.1, 1.0)})\n'
    (site / "strange_models.py").write_text(code + "\nfrom latem import ModelRow\n" + row)
    info = site / "strange_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[latem.models]\nNearestMean = strange_models:ROW\nBroken = strange_models:NOTHING\n"
    )
    write_folder(world, tmp_path / "data")
    script = f"""
        import sys, warnings
        sys.path.insert(0, {str(site)!r})
        import latem
        world = latem.read_folder({str(tmp_path / "data")!r})
        if sys.argv[1] == "save":
            from strange_models import NearestMean, ROW
            latem.register(ROW)
            NearestMean(world.embeddings["att"]).fit(*world.training()).save(sys.argv[2])
        else:
            assert "strange_models" not in sys.modules
            model = latem.load(sys.argv[2])
            assert type(model).__module__ == "strange_models"
            from latem.models import model_rows
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                names = [row.name for row in model_rows.rows()]
            assert "NearestMean" in names and "Broken" not in names
            assert "'Broken' of an installed package cannot be used" in str(caught[0].message)
            from latem.selection import GRIDS
            assert GRIDS["NearestMean"]
    """
    for what in ("save", "load"):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), what, str(tmp_path / "m")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
