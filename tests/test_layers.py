"""The house keeps its rules; and the reader of the rules sees what breaks them."""

import ast

import pytest
from helpers import REPOSITORY
from layers import Code, defined_names, is_private, private_uses, reassigned

CODE = Code(REPOSITORY / "src")
OUTSIDE = ("benchmarks", "tools", "examples")


def outside():
    for folder in OUTSIDE:
        for path in sorted((REPOSITORY / folder).glob("*.py")):
            yield f"{folder}/{path.name}", ast.parse(path.read_text(encoding="utf-8"))


def everything():
    yield from CODE.trees.items()
    yield from outside()


def test_imports_point_down():
    assert CODE.upward() == []


def test_no_module_imports_itself_by_way_of_others():
    assert CODE.cycles() == []


def test_the_top_level_holds_doors_only():
    assert CODE.strangers() == []
    assert CODE.unknown_rooms() == []


def test_underscored_names_stay_at_home():
    private = set()
    for tree in CODE.trees.values():
        private |= {name for name in defined_names(tree) if is_private(name)}
    found = [
        f"{module}:{line} uses {name}"
        for module, tree in everything()
        for line, name in private_uses(tree, private)
    ]
    assert found == []


def test_nobody_reassigns_another_module_s_globals():
    found = [
        f"{module}:{line} reassigns {name}"
        for module, tree in everything()
        for line, name in reassigned(tree)
    ]
    assert found == []


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in {root / "latem", *(path.parent for path in root.rglob("*.py"))}:
        (folder / "__init__.py").touch()
    return Code(root)


@pytest.mark.parametrize(
    "line",
    [
        "from latem.models.base import Base",
        "def late():\n    from latem.models import base",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import latem.models.base",
        "HOME = 'latem.models.base'",
        "from latem import __version__",
        "def late(name):\n    return load(f'latem.models.{name}')",
    ],
)
def test_an_upward_import_is_seen(tmp_path, line):
    code = write(tmp_path, {"latem/models/base.py": "class Base: ...", "latem/core/a.py": line})
    assert len(code.upward()) == 1
    assert code.upward()[0].startswith("latem.core.a:")


def test_a_downward_import_is_fine(tmp_path):
    code = write(
        tmp_path, {"latem/models/base.py": "from latem.core import a", "latem/core/a.py": "x = 1"}
    )
    assert code.upward() == []
    assert code.cycles() == []


def test_a_cycle_is_seen(tmp_path):
    code = write(
        tmp_path,
        {
            "latem/core/a.py": "from latem.core.b import x",
            "latem/core/b.py": "def late():\n    from latem.core import c",
            "latem/core/c.py": "HOME = 'latem.core.a'",
        },
    )
    assert code.cycles() == [["latem.core.a", "latem.core.b", "latem.core.c"]]


def test_a_stranger_at_the_door_and_an_unplanned_room_are_seen(tmp_path):
    code = write(tmp_path, {"latem/tool.py": "", "latem/attic/a.py": ""})
    assert code.strangers() == ["latem.tool"]
    assert code.unknown_rooms() == ["attic", "tool"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from latem.core.a import _hidden", ["_hidden"]),
        ("from latem.core import a\na._hidden(1)", ["_hidden"]),
        ("def f(model):\n    return model._hidden", ["_hidden"]),
        ("class B(A):\n    def f(self):\n        return self._hidden, super()._hidden", []),
        ("def _hidden(): ...\ndef f(model):\n    return model._hidden", []),
        ("def f(model):\n    return model._of_another_library", []),
    ],
)
def test_private_uses_are_seen(text, names):
    assert [name for _, name in private_uses(ast.parse(text), {"_hidden"})] == names


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("from latem.core import a\na.LIMIT = 3", 1),
        ("import latem\nlatem.core.a.TABLE['x'] = 3", 1),
        ("from latem.core import a\na.COUNT += 1", 1),
        ("import numpy as np\nnp.x = 3", 0),
        ("from latem import LatEm\nmodel = LatEm()\nmodel.n_maps = 3", 0),
    ],
)
def test_reassigned_globals_are_seen(text, n):
    assert len(reassigned(ast.parse(text))) == n
