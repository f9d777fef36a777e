"""Edited code is another code; edited words about it are not."""

import ast
import shutil
import sys
from dataclasses import replace

import pytest

import latem
from latem import ClassEmbeddings, make_latent_world
from latem.experiments.code_digest import (
    FOLDER,
    SourceMissingError,
    canonical,
    code_digest,
    code_key,
    deciding_modules,
    read_module,
)
from latem.experiments.fits import Fit, run_fit
from latem.experiments.tables import read_protocols
from latem.models import model_rows


@pytest.fixture
def copy(tmp_path):
    """A copy of the package that can be edited."""
    ignore = shutil.ignore_patterns("data", "__pycache__", "templates")
    return shutil.copytree(FOLDER, tmp_path / "elsewhere" / "latem", ignore=ignore)


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_it_does_not_matter_where_the_package_lies(copy):
    assert code_digest(copy) == code_digest()


def test_comments_docstrings_and_layout_do_not_matter(copy):
    before = code_digest(copy)
    path = copy / "models" / "eszsl.py"
    module = path.read_text()
    docstring = ast.get_docstring(ast.parse(module), clean=False)
    path.write_text(
        "# a comment\n\n\n" + module.replace(docstring, "Other words.", 1) + "\n# end\n"
    )
    edit(copy / "experiments" / "fits.py", "N_TOP = 8\n", 'N_TOP = (8)  # best\n"""How many."""\n')
    assert code_digest(copy) == before


def test_code_matters(copy):
    digests = [code_digest(copy)]
    for name, old, new in (
        ("experiments/fits.py", "N_TOP = 8", "N_TOP = 9"),
        ("models/sgd/kernels.py", "2.0**112", "2.0**111"),
        ("models/registry.py", "range(-3, 4)", "range(-3, 5)"),
        ("metrics/accuracy.py", "def mean_class_accuracy(", "def mean_accuracy("),
        ("core/arrays.py", "axis=1", "axis=0"),
    ):
        edit(copy / name, old, new)
        digests.append(code_digest(copy))
    assert len(set(digests)) == len(digests)


def test_modules_that_no_training_needs_do_not_matter(copy):
    before = code_digest(copy)
    (copy / "models" / "unused.py").write_text("ANSWER = 42\n")
    for name in ("report/page.py", "cli/main.py", "datasets/fetch.py", "experiments/summary.py"):
        (copy / name).write_text("ANSWER = 42\n")
    assert code_digest(copy) == before
    edit(copy / "models" / "eszsl.py", "import numpy as np", "import latem.models.unused")
    assert "latem.models.unused" in {module.name for module in deciding_modules(copy)}


@pytest.mark.parametrize(
    ("line", "followed"),
    [
        ("def late():\n    from latem.report import page", True),
        ("import latem.report.page as page", True),
        ("from ..report import page", True),
        ("from ..report.page import write", True),
        ("from latem import report", False),  # the package that holds it, not the module
        ("if TYPE_CHECKING:\n    from latem.report import page", False),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from latem.report import page", True),
    ],
)
def test_imports_are_followed_wherever_they_stand(copy, line, followed):
    (copy / "report" / "__init__.py").write_text("")
    (copy / "report" / "page.py").write_text("")
    path = copy / "models" / "eszsl.py"
    path.write_text(path.read_text() + f"\n{line}\n")
    names = {module.name for module in deciding_modules(copy)}
    assert ("latem.report.page" in names) == followed


def test_every_registered_model_is_followed():
    names = {module.name for module in deciding_modules()}
    ours = {row.module for row in model_rows.own_rows() if row.module.startswith("latem.")}
    assert ours <= names
    assert {f"latem.models.sgd.{name}kernels" for name in ("", "dense_", "team_")} <= names
    models = {f"latem.models.{path.stem}" for path in (FOLDER / "models").glob("[!_]*.py")}
    assert models - names == {"latem.models.info"}  # it reads files, and no training asks it


def test_what_is_left_out_only_hands_names_on():
    """The package itself is not digested, nor packages on the way to a module that is."""
    modules = deciding_modules()
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module == "latem":
                assert [alias.name for alias in node.names] == ["__version__"], module.name
            if isinstance(node, ast.Import):
                assert "latem" not in [alias.name for alias in node.names], module.name
    counted = {module.name for module in modules}
    parents = {name.rpartition(".")[0] for name in counted} - counted - {"latem"}
    assert parents
    for name in parents:
        for node in read_module(name).tree.body:
            is_all = isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
            assert isinstance(node, ast.ImportFrom | ast.Expr) or is_all, name


def test_all_code_that_runs_is_counted():
    """Every function of latem that a training of the paper's calls is in a counted module."""
    world = make_latent_world(n_seen=12, n_unseen=4, n_images=5, n_features=8, random_state=0)
    att = world.embeddings["att"]
    positive = att.vectors - att.vectors.min()
    tables = {
        name: ClassEmbeddings(att.names, positive, name=name, columns=att.columns)
        for name in ("att", "traits")
    }
    world = replace(world, embeddings=tables)
    seen = set()

    def note(frame, event, argument):
        if frame.f_code.co_name != "<module>":
            seen.add(str(frame.f_globals.get("__name__", "")))

    for recipe in read_protocols().with_epochs(1).recipes.values():
        given = {**recipe.params, **{k: v[0] for k, v in {**recipe.tune, **recipe.grid}.items()}}
        if given.get("learning_rate") == "dataset":
            given["learning_rate"] = 0.1
        for embeddings in (("att",), ("att", "traits")):
            fit = Fit.of(
                dataset="CUB", split="standard", part="all", embeddings=embeddings,
                model=recipe.model, params=given, seed=0,
            )  # fmt: skip
            run_fit(fit, world)  # compiles and imports
            before = sys.getprofile()
            sys.setprofile(note)
            try:
                run_fit(fit, world)
            finally:
                sys.setprofile(before)
    ours = {name for name in seen if name.split(".")[0] == "latem"}
    assert {"latem.experiments.fits", "latem.models.cmt", "latem.models.sgd.loop"} <= ours
    assert ours <= {module.name for module in deciding_modules()}


@pytest.mark.parametrize("name", ["experiments/fits.py", "models/eszsl.py", "core/arrays.py"])
def test_without_sources_the_version_stands_in_and_that_is_said(copy, name):
    assert code_key(copy) == (code_digest(), "")
    (copy / name).unlink()
    with pytest.raises(SourceMissingError, match="The source of latem"):
        code_digest(copy)
    key, note = code_key(copy)
    assert key == f"version {latem.__version__}"
    assert "told apart by latem's version" in note
    assert "delete the folder cells" in note


def test_constants_of_other_types_differ():
    texts = ["1", "1.0", "True", "'1'", "b'1'", "None", "...", "[1]", "(1,)", "{1}", "-1", "1j"]
    assert len({canonical(ast.parse(f"x = {text}")) for text in texts}) == len(texts)
