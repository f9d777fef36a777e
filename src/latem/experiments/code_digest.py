"""A digest of the code that decides a training, so that results of other code are not reused.

The modules are found by following imports from `latem.experiments.fits` and from every registered
model, wherever an import stands in a file. Their syntax trees are digested without docstrings and
comments: a changed constant gives another digest, a changed comment does not.

The package `latem` itself is left out, since it only hands names on, and so are packages that are
imported only on the way to one of their modules.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latem.core.version import __version__
from latem.models import model_rows

PACKAGE = "latem"
FOLDER = Path(__file__).parents[1]
START = ("latem.models.registry", "latem.experiments.fits")


class SourceMissingError(LookupError):
    """The source of a module is not at hand."""


@dataclass(frozen=True)
class Module:
    """A module of the package.

    Attributes
    ----------
    name : str
    tree : ast.Module
    is_package : bool
        Whether it is the `__init__` of a package.
    """

    name: str
    tree: ast.Module
    is_package: bool


def code_digest(folder: Path = FOLDER) -> str:
    """Digest of the code that decides a training.

    Parameters
    ----------
    folder : path
        Folder of the package `latem`. The digest does not depend on where it lies.

    Raises
    ------
    SourceMissingError
        If a module has no source file there, as in an installation of compiled files only.
    """
    digest = hashlib.blake2b(digest_size=16)
    for module in deciding_modules(folder):
        digest.update(f"{module.name}\n{canonical(module.tree)}\n".encode())
    return digest.hexdigest()


def code_key(folder: Path = FOLDER) -> tuple[str, str]:
    """What stands for the code in the names of results, and a note if that says too little.

    It is the digest of the code. Without source files it is latem's version, and the note says
    that edited code is not noticed.
    """
    try:
        return code_digest(folder), ""
    except SourceMissingError as error:
        note = (
            f"{error} Kept trainings are told apart by latem's version ({__version__}) only: after "
            f"a change of its code, delete the folder cells."
        )
        return f"version {__version__}", note


def deciding_modules(folder: Path = FOLDER) -> list[Module]:
    """Modules that a training depends on, sorted by name."""
    models = [row.module for row in model_rows.own_rows() if _is_inside(row.module)]
    found: dict[str, Module] = {}
    names = [*models, *START]
    while names:
        name = names.pop()
        if name in found:
            continue
        module = read_module(name, folder)
        if module is None:
            raise SourceMissingError(f"The source of {name} is not in {folder}.")
        found[name] = module
        for base, members in _imports(module):
            if _is_inside(base):
                names.append(base)
            if base == PACKAGE or _is_inside(base):  # a member may be a module
                paths = (f"{base}.{member}" for member in members)
                names += [path for path in paths if _source(path, folder) is not None]
    return sorted(found.values(), key=lambda module: module.name)


def read_module(name: str, folder: Path = FOLDER) -> Module | None:
    """A module of the package by its full name; None if it has no source file."""
    path = _source(name, folder)
    if path is None:
        return None
    return Module(name, ast.parse(path.read_bytes(), str(path)), path.name == "__init__.py")


def canonical(node: Any) -> str:
    """Text of a syntax tree without docstrings, comments and line numbers.

    `ast.dump` would differ between versions of Python, which write out empty fields or do not.

    >>> canonical(ast.parse("x = 1  # one")) == canonical(ast.parse("x = (1)"))
    True
    >>> canonical(ast.parse("x = 1")) == canonical(ast.parse("x = 1.0"))
    False
    """
    if isinstance(node, ast.AST):
        fields = [
            f"{name}={canonical(value)}"
            for name, value in ast.iter_fields(node)
            if value is not None and value != []
        ]
        return f"{type(node).__name__}({', '.join(fields)})"
    if isinstance(node, list):
        return f"[{', '.join(canonical(item) for item in node if not _is_bare_text(item))}]"
    return repr(node)


def _is_bare_text(node: Any) -> bool:
    """Whether a statement is a lone string, such as a docstring: it does nothing."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_inside(name: str) -> bool:
    """Whether a module is one of the package's, other than the package itself."""
    return name.startswith(f"{PACKAGE}.")


def _source(name: str, folder: Path) -> Path | None:
    """Source file of a module of the package."""
    place = folder.joinpath(*name.split(".")[1:])
    for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def _imports(module: Module) -> Iterator[tuple[str, list[str]]]:
    """What a module imports: full names of modules, with the names that are taken from them."""
    for node in _running(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, []
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.name.split(".")
                kept = len(parts) - node.level + module.is_package
                base = ".".join([*parts[:kept], *filter(None, [node.module])])
            yield base, [alias.name for alias in node.names]


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree but those under `if TYPE_CHECKING`, which never run."""
    yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.If) and name == "body" and _asks_for_types(node.test):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _running(child)


def _asks_for_types(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"
