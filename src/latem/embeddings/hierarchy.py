"""`hie`: class embeddings from the place of each class in WordNet's noun hierarchy.

Only the class names are needed: a zebra is an equine, a mammal, an animal, and shares more of
those with a horse than with a trout. The nouns of WordNet 3.0, whose offsets are ImageNet's ids,
ship with the library. A name can have many senses (the first of "dalmatian" is a person), so
every embedding comes with a report of the senses taken, and every sense can be set by hand.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from latem.core.messages import first_few, shortened
from latem.core.paths import no_file
from latem.core.slim import needed
from latem.embeddings.table import ClassEmbeddings
from latem.embeddings.wordnet import LEXNAMES, Synset, in_words, listed, load_wordnet

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5
_GIVEN = "(given)"


class Sense(NamedTuple):
    """What a class name was taken to mean, by which of its words, out of which senses."""

    synset: Synset
    found_by: str
    candidates: list[Synset]


def find_sense(name: str, *, hint: str | Sequence[str] | None = None) -> Sense:
    """Meaning of a class name.

    1. A name that begins with an ImageNet id ("n02085620-Chihuahua") means that synset.
    2. The whole name is looked up; if it is unknown, its leading words, numbers among them, are
       dropped one by one: "001.Black_footed_Albatross" is found by "albatross".
    3. Of the senses of those words, the first one is taken. With a `hint`, it is chosen
       among those of the first kind in it that has any: the first sense whose main word is this
       very name ("dolphin" the whale before "dolphinfish, dolphin"), or else the first.

    Parameters
    ----------
    name : str
        Words in any case, with spaces, underscores, hyphens or "+" between them.
    hint : str or sequence of str, optional
        Preferred lexicographer files (kinds of noun), such as "animal" or ["food", "plant"].

    Returns
    -------
    Sense
        `synset`, `found_by` (the words that matched) and `candidates` (all their senses).

    Examples
    --------
    >>> find_sense("dalmatian").synset.lexname
    'noun.person'
    >>> find_sense("dalmatian", hint="animal").synset.name
    'dalmatian.n.02'
    """
    sense = _look_up(name, _check_hint(hint))
    if sense is None:
        raise ValueError(f"WordNet does not know {_with_near(name)}; use another name for it.")
    return sense


def hierarchy_embeddings(
    names: Iterable[str],
    *,
    senses: Mapping[str, str | int] | str | PathLike[str] | None = None,
    hint: str | Sequence[str] | None = None,
    name: str = "hie",
) -> tuple[ClassEmbeddings, pd.DataFrame]:
    """Class embeddings from WordNet's noun hierarchy, and what each name was taken to mean.

    There is one dimension for every synset that is, or is more general than, the synset of some
    class. With d(c, a) the fewest hypernym steps from class c up to synset a, the entry is
    1 / (1 + d(c, a)), and 0 where a is not above c. Dimensions that are the same for all classes
    are dropped, unless all of them are. Classes with the same synset get the same vector, and a
    warning.

    Parameters
    ----------
    names : sequence of str
        Class names; `find_sense` says how their meaning is found.
    senses : mapping of class to synset, or path, optional
        Meanings that are given rather than found, as ids ("n02391049") or names ("zebra.n.01"). A
        file is a CSV with columns `class` and `synset`, such as the report, saved and corrected.
    hint : str or sequence of str, optional
        Preferred lexicographer files, such as "animal".
    name : str
        Name of the embedding.

    Returns
    -------
    table : ClassEmbeddings of shape (n_classes, n_dimensions)
        Its columns are the synsets' names, by offset.
    report : DataFrame, indexed by class
        `synset` (id), `sense` (name), `found_by` (the words that matched, "(given)" if set by
        `senses`), `candidates` (all senses of those words), `ambiguous` (there were several).

    Examples
    --------
    >>> table, report = hierarchy_embeddings(["zebra", "horses", "trout"], hint="animal")
    >>> table.to_frame()["equine.n.01"].tolist()
    [0.5, 0.5, 0.0]
    >>> report["sense"].tolist()
    ['zebra.n.01', 'horse.n.01', 'trout.n.02']
    """
    names = _check_names(names)
    kinds = _check_hint(hint)
    wordnet = load_wordnet()
    given = _check_senses(senses, names)
    found = {key: _look_up(key, kinds) for key in names}
    for key, synset in given.items():
        known = found[key]
        found[key] = Sense(synset, _GIVEN, known.candidates if known else [])
    unknown = [key for key, sense in found.items() if sense is None]
    if unknown:
        raise ValueError(
            f"WordNet does not know {'; '.join(map(_with_near, unknown))}. Rename such classes "
            f"or give their synsets, as in senses={{{unknown[0]!r}: 'animal.n.01'}}."
        )
    chosen = {key: sense for key, sense in found.items() if sense is not None}
    steps = [wordnet.ancestors(chosen[key].synset) for key in names]
    offsets = sorted(set().union(*steps))
    place = {offset: column for column, offset in enumerate(offsets)}
    vectors = np.zeros((len(names), len(offsets)))
    for row, distances in enumerate(steps):
        for offset, distance in distances.items():
            vectors[row, place[offset]] = 1 / (1 + distance)
    telling = (vectors != vectors[0]).any(axis=0)
    if not telling.any():
        telling[:] = True
    columns = [wordnet.synset(offsets[column]).name for column in np.flatnonzero(telling)]
    table = ClassEmbeddings(names, vectors[:, telling], name=name, columns=columns)
    _warn_of_twins(chosen)
    return table, _report(chosen)


# -- names ------------------------------------------------------------------------------------


def _look_up(name: str, kinds: Sequence[str]) -> Sense | None:
    wordnet = load_wordnet()
    numbered = re.match(r"n\d{8}(?!\d)", name)
    if numbered and int(numbered[0][1:]) in wordnet:
        synset = wordnet.synset(numbered[0])
        return Sense(synset, numbered[0], [synset])
    words = in_words(name).split()
    for first in range(_first_that_fits(words), len(words)):
        phrase = " ".join(words[first:])
        senses = wordnet.synsets(phrase)
        if senses and (first == 0 or not phrase.isdigit()):
            return Sense(_preferred(senses, phrase, kinds), phrase, senses)
    return None


def _first_that_fits(words: Sequence[str]) -> int:
    """Where the last words begin that are together short enough to be known."""
    room = load_wordnet().longest
    for first in range(len(words) - 1, -1, -1):
        room -= len(words[first])
        if room < 0:
            return first + 1
    return 0


def _preferred(senses: Sequence[Synset], phrase: str, kinds: Sequence[str]) -> Synset:
    spellings = {phrase, *load_wordnet().singulars(phrase)}
    for kind in kinds:
        of_kind = [synset for synset in senses if synset.lexname == kind]
        by_name = [synset for synset in of_kind if in_words(synset.lemmas[0]) in spellings]
        if of_kind:
            return (by_name or of_kind)[0]
    return senses[0]


def _with_near(name: str) -> str:
    near = load_wordnet().near(name)
    return repr(shortened(name)) + (f" (near: {', '.join(near)})" if near else "")


# -- checks and report ------------------------------------------------------------------------


def _check_names(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"hierarchy_embeddings needs a list of names, not the one name {names!r}.")
    names = list(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"hierarchy_embeddings needs class names that are words, not {name!r} of type "
                f"{type(name).__name__}."
            )
    if not names:
        raise ValueError("hierarchy_embeddings needs at least one class name.")
    return names


def _check_hint(hint: str | Sequence[str] | None) -> list[str]:
    hints = [hint] if isinstance(hint, str) else list(hint or [])
    known = {kind.lower(): f"noun.{kind}" for kind in LEXNAMES}
    for kind in hints:
        if str(kind).lower().removeprefix("noun.") not in known:
            raise ValueError(f"WordNet has no kind {kind!r}; hint may be {', '.join(LEXNAMES)}.")
    return [known[kind.lower().removeprefix("noun.")] for kind in hints]


def _check_senses(senses: Any, names: Sequence[str]) -> dict[str, Synset]:
    if senses is None:
        return {}
    where = "senses"
    if isinstance(senses, str | PathLike):
        where = str(senses)
        senses = _read_senses(Path(senses))
    if not isinstance(senses, Mapping):
        raise TypeError(
            f"senses must be a dict of class → synset or a CSV's path, not {type(senses).__name__}."
        )
    known = set(names)
    strange = [key for key in senses if key not in known]
    if strange:
        raise ValueError(
            f"{where} names classes that are not among the names: {first_few(strange)}; correct or "
            f"drop them."
        )
    given = {}
    for key, synset in senses.items():
        try:
            given[key] = load_wordnet().synset(synset)
        except ValueError as error:
            raise ValueError(f"{where}, class {key!r}: {error}") from None
    return given


def _read_senses(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise no_file(path, "file of senses")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'.") from None
    rows = csv.DictReader(lines, delimiter=max(",;\t", key=lines[0].count) if lines else ",")
    try:
        return _listed_senses(path, rows)
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.reader.line_num}: {error}.") from None


def _listed_senses(path: Path, rows: csv.DictReader) -> dict[str, str]:
    columns = rows.fieldnames or []
    if "class" not in columns or "synset" not in columns:
        raise ValueError(
            f"{path} needs columns 'class' and 'synset', but has {first_few(columns) or 'none'}."
        )
    senses: dict[str, str] = {}
    for row in rows:
        if row["class"] in senses:
            raise ValueError(
                f"{path}, line {rows.line_num}: class {row['class']!r} is listed twice."
            )
        senses[row["class"]] = row["synset"] or ""
    return senses


def _warn_of_twins(chosen: Mapping[str, Sense]) -> None:
    groups: dict[str, list[str]] = {}
    for key, sense in chosen.items():
        groups.setdefault(sense.synset.name, []).append(key)
    twins = [f"{first_few(keys)} ({name})" for name, keys in groups.items() if len(keys) > 1]
    if twins:
        n = len(twins) - _SHOWN
        more = f"; and {n} more group{'s' if n > 1 else ''}" if n > 0 else ""
        warnings.warn(
            f"These classes have the same synset and so the same vector: "
            f"{'; '.join(twins[:_SHOWN])}{more}. Tell them apart with senses, or by another "
            f"embedding beside this one.",
            UserWarning,
            stacklevel=3,
        )


def _report(chosen: Mapping[str, Sense]) -> pd.DataFrame:
    rows = [
        {
            "synset": sense.synset.id,
            "sense": sense.synset.name,
            "found_by": sense.found_by,
            "candidates": listed(sense.candidates),
            "ambiguous": len(sense.candidates) > 1 and sense.found_by != _GIVEN,
        }
        for sense in chosen.values()
    ]
    pd = needed("pandas", "Reports of senses")
    return pd.DataFrame(rows, index=pd.Index(list(chosen), name="class"))
