"""Classes given on the command line: the --classes option, and classes described by others."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from latem.embeddings.describe import Description

Classes = Annotated[
    str,
    typer.Option(
        help="Which classes may be the answer, separated by commas: unseen, seen, all, names, and "
        "tables of new classes (files)."
    ),
]
Like = Annotated[
    str | None,
    typer.Option("--like", help="Describe a new class by this one; see --set, --most, --least."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="A trait that is different: COLUMN=VALUE; may be repeated."),
]
Most = Annotated[
    list[str] | None,
    typer.Option("--most", help="A column that has its largest value; may be repeated."),
]
Least = Annotated[
    list[str] | None,
    typer.Option("--least", help="A column that has its smallest value; may be repeated."),
]
Called = Annotated[
    str | None, typer.Option("--as", help="Name of the new class; by default 'like …'.")
]


@dataclass(frozen=True)
class Likeness:
    """A new class described by another one, as the options of a command have it.

    Attributes
    ----------
    like : str or None
        The other class; None means that there is no new class.
    changes, most, least : list of str or None
    called : str or None
        Name of the new class.
    """

    like: str | None = None
    changes: list[str] | None = None
    most: list[str] | None = None
    least: list[str] | None = None
    called: str | None = None

    def __post_init__(self) -> None:
        from latem.models.class_view import GROUPS

        given = {
            "--set": self.changes, "--most": self.most, "--least": self.least, "--as": self.called
        }  # fmt: skip
        alone = [option for option, value in given.items() if value]
        if self.like is None and alone:
            raise typer.BadParameter(
                f"{alone[0]} changes a class that is given with --like; name that class."
            )
        if self.called is not None and self.called.strip() in ("", *GROUPS):
            raise typer.BadParameter(
                f"--as must be a name for the new class, not {self.called!r}; seen, unseen and all "
                f"are groups of classes."
            )

    @property
    def name(self) -> str:
        """Name of the new class."""
        return self.called or f"like {self.like}"

    def of(self, table: Any) -> Description:
        """The description, by a class table."""
        from latem.embeddings.describe import described

        return described(
            table,
            self.like,
            changes=self.changes or (),
            most=self.most or (),
            least=self.least or (),
        )


def candidates(classes: str, model: Any = None, likeness: Likeness | None = None) -> Any:
    """Meaning of a --classes option, with a class that is described by another one.

    Parameters
    ----------
    classes : str
    model : fitted model, optional
        Whose class table describes the other one.
    likeness : Likeness, optional
    """
    meant = _listed(classes)
    if isinstance(meant, list) and model is not None:
        _check_spelling(meant, model)
    if likeness is None or likeness.like is None:
        return meant
    new = likeness.of(table_of(model)).named(likeness.name)
    return [*([meant] if isinstance(meant, str) else meant), new]


def _check_spelling(names: list[str], model: Any) -> None:
    """Refuse a group that is spelled otherwise, unless a class is called so, or nearly so."""
    from latem.models.class_view import GROUPS

    known = set(map(str, model.candidate_names("all").tolist()))
    for name in names:
        if name in GROUPS or name in known or difflib.get_close_matches(name, known, n=1):
            continue
        for group in difflib.get_close_matches(name.lower(), GROUPS, n=1, cutoff=0.8):
            raise ValueError(f"There is no class {name!r}; did you mean {group!r}?")


def among(classes: str, model: Any, meant: Any) -> str:
    """Which classes may be the answer, for a heading: a group by its name and size."""
    n = len(model.candidate_names(meant))
    if meant == classes and classes in ("seen", "unseen"):
        return f"among the {n} {classes} classes"
    if meant == classes == "all":
        n_seen = len(model.classes_)
        return f"among all {n} classes, {n_seen} seen and {n - n_seen} unseen"
    return f"among {n} classes"


def table_of(model: Any) -> Any:
    """The class table of a model that has one."""
    table = getattr(model, "class_table_", None)
    if table is None:
        raise TypeError(
            f"--like needs a model with one class table, but {type(model).__name__} describes "
            f"classes by several; describe the class for each of its members."
        )
    return table


def _listed(classes: str) -> str | list[str]:
    from latem.models.class_view import GROUPS, is_class_table

    if classes in GROUPS or (is_class_table(classes) and Path(classes).is_file()):
        return classes  # a file's name may hold commas
    names = [name.strip() for name in classes.split(",") if name.strip()]
    if not names:
        raise ValueError("--classes names no class; give at least one, or unseen, seen or all.")
    return names
