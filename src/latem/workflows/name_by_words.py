"""Naming pictures from words alone: nothing is learned from the user's pictures.

The last layer of EfficientNet-Lite0 has one row of weights for each of 1000 ImageNet classes: 1000
visual prototypes, whose ids are nouns of WordNet. The *base model* that ships with the library is
`ESZSL`, fitted to those rows and to the classes' places in WordNet. Any noun has such a place, so
any list of nouns can be candidates.

The class side: a name's vector says how much it is like each of the 1000 classes, by what is above
both in WordNet. The image side: rows of weights and pooled features differ in scale, so both are
divided by their length; nothing is subtracted, since the mean of the rows is close to zero and
the mean of the photos is not known. `tools/build_base_model.py` makes the file,
`benchmarks/name.py` measures it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.arrays import unit_rows
from latem.core.messages import first_few
from latem.embeddings.hierarchy import Sense, find_sense
from latem.embeddings.table import ClassEmbeddings
from latem.embeddings.wordnet import Synset, load_wordnet
from latem.models.answers import Answers
from latem.models.files import load
from latem.models.table_model import TableClassifier
from latem.workflows.name_pictures import name_pictures

BASE_MODEL = Path(__file__).parent / "data" / "base_model.safetensors"
EMBEDDING = "names"  # the base model's class table
_FULL = 255  # likeness of a class to itself
_STRANGE = 64  # a name that is like no class as much as this is hardly recognised
# kinds of noun that can be seen in a photo; substances would make an otter its fur
_VISIBLE = {
    f"noun.{kind}"
    for kind in (
        *("Tops", "animal", "artifact", "body", "food", "location", "object", "person"),
        *("phenomenon", "plant"),
    )
}


def likeness(synsets: Sequence[Synset], known: Sequence[Synset]) -> np.ndarray:
    """How much some synsets are like those that are known.

    A synset is written as a vector with the entry 1 / (1 + d) for each synset d steps above it, 0
    for the others, as in `hierarchy_embeddings`. What is above none, or above all, of the known
    ones is left out. Likeness is the cosine of two such vectors.

    Parameters
    ----------
    synsets, known : sequences of Synset

    Returns
    -------
    ndarray of shape (n_synsets, n_known)
        Whole numbers from 0 to 255, which stands for 1: a byte holds them.

    Examples
    --------
    >>> wordnet = load_wordnet()
    >>> known = [wordnet.synset(name) for name in ("zebra.n.01", "trout.n.02", "violin.n.01")]
    >>> likeness([wordnet.synset("horse.n.01")], known)
    array([[153.,  21.,   0.]])
    """
    return np.rint(_FULL * ancestors(synsets, known) @ ancestors(known, known).T)


def ancestors(synsets: Sequence[Synset], known: Sequence[Synset]) -> np.ndarray:
    """The vectors that `likeness` compares, of length 1, or zero if nothing is shared."""
    wordnet = load_wordnet()
    above = [set(wordnet.ancestors(synset)) for synset in known]
    offsets = sorted(set().union(*above) - above[0].intersection(*above))
    place = {offset: column for column, offset in enumerate(offsets)}
    vectors = np.zeros((len(synsets), len(offsets)))
    for row, synset in enumerate(synsets):
        for offset, distance in wordnet.ancestors(synset).items():
            if offset in place:
                vectors[row, place[offset]] = 1 / (1 + distance)
    return unit_rows(vectors)


@functools.cache
def load_base_model() -> TableClassifier:
    """The model that ships with the library, read once.

    Its classes, and the columns of its class table, are the 1000 ImageNet ids. It remembers its
    encoder, so `latem.load` and `latem predict` can use its file as well.

    >>> len(load_base_model().classes_)
    1000
    """
    model = load(BASE_MODEL)
    assert isinstance(model, TableClassifier)
    return model


def understand(name: str, *, hint: str | Sequence[str] | None = None) -> Sense:
    """Meaning of a name, as something that can be seen in a picture.

    A synset's name ("crane.n.04") or ImageNet's id means that synset. Otherwise the words are
    looked up as `find_sense` does, and of their senses the first one is taken that can be seen (an
    animal, a plant, a person, food, a thing, a place, weather, …) and is not a proper name; if
    there is none, the first.

    Parameters
    ----------
    name : str
    hint : str or sequence of str, optional
        Preferred kinds of noun, such as "animal"; they come before.

    Returns
    -------
    Sense

    Examples
    --------
    >>> understand("dalmatian").synset.name
    'dalmatian.n.02'
    >>> understand("Red-tailed okapi").found_by
    'okapi'
    """
    wordnet = load_wordnet()
    if ".n." in name:
        synset = wordnet.synset(name)
        return Sense(synset, name, [synset])
    sense = find_sense(name, hint=hint)
    hints = [hint] if isinstance(hint, str) else list(hint or [])
    if sense.synset.lexname.removeprefix("noun.") in {h.removeprefix("noun.") for h in hints}:
        return sense
    words = sense.found_by.replace(" ", "")

    def proper(synset: Synset) -> bool:
        spellings = [lemma for lemma in synset.lemmas if lemma.replace("_", "").lower() == words]
        return bool(spellings) and all(lemma[0].isupper() for lemma in spellings)

    seen = [synset for synset in sense.candidates if synset.lexname in _VISIBLE]
    common = [synset for synset in seen if not proper(synset)]
    return sense._replace(synset=(common or seen or [sense.synset])[0])


def name_table(names: Iterable[str], *, hint: str | Sequence[str] | None = None) -> ClassEmbeddings:
    """Class table for the base model, from names alone.

    Parameters
    ----------
    names : sequence of str
        At least two; `understand` says how their meaning is found.
    hint : str or sequence of str, optional
        Preferred kinds of noun, such as "animal".

    Returns
    -------
    ClassEmbeddings
        For the base model's `classes`. Names with the same meaning, or of which only the same
        general things are known (dahlia and sunflower are flowers), have the same vector; a
        warning says so. Another warning lists names that are like nothing the network
        has learned, such as "democracy".

    Raises
    ------
    ValueError
        If a name is unknown, with names near it, or is related to nothing at all.

    Examples
    --------
    >>> table = name_table(["okapi", "tapir", "zebra"])
    >>> table.names.tolist()
    ['okapi', 'tapir', 'zebra']
    """
    names = _check_names(names)
    senses, unknown = [], []
    for name in names:
        try:
            senses.append(understand(name, hint=hint))
        except ValueError as error:
            unknown.append(str(error))
    if unknown:
        raise ValueError(" ".join(dict.fromkeys(unknown)))  # a bad hint fails for every name
    columns = load_base_model().class_table_.columns
    known = [load_wordnet().synset(column) for column in columns or ()]
    vectors = likeness([sense.synset for sense in senses], known)
    nearest = dict(zip(names, vectors.max(axis=1).tolist(), strict=True))
    alien = [name for name, value in nearest.items() if not value]
    if alien:
        raise ValueError(
            f"Nothing that the base model has learned is related to {first_few(alien)}; use "
            f"other names."
        )
    strange = [name for name, value in nearest.items() if value < _STRANGE]
    if strange:
        warnings.warn(
            f"The base model has learned nothing that is much like {first_few(strange)}, and will "
            f"hardly recognise it.",
            UserWarning,
            stacklevel=2,
        )
    groups: dict[bytes, list[str]] = {}
    for name, vector in zip(names, vectors, strict=True):
        groups.setdefault(vector.tobytes(), []).append(name)
    twins = [first_few(group) for group in groups.values() if len(group) > 1]
    if twins:
        warnings.warn(
            f"The base model knows the same about these names and cannot tell them apart: "
            f"{'; '.join(twins)}. Keep one of each.",
            UserWarning,
            stacklevel=2,
        )
    return ClassEmbeddings(names, vectors, name=EMBEDDING, columns=columns)


def name_pictures_by_words(
    pictures: Iterable[Any],
    names: Iterable[str],
    *,
    top: int = 5,
    hint: str | Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Answers:
    """Name pictures with your own words, without any training.

    Parameters
    ----------
    pictures : iterable of paths, bytes, binary files, PIL images or uint8 arrays
    names : sequence of str
        The possible answers; see `name_table`.
    top : int
        How many to give, at most as many as there are names.
    hint : str or sequence of str, optional
        Preferred kinds of noun.
    progress : callable, optional
        Called with the number of pictures done.

    Returns
    -------
    Answers
        For each picture its names, best first, and their scores, or why it cannot be read. Scores
        rank the names of one picture; they are not probabilities.
    """
    table = name_table(names, hint=hint)
    return name_pictures(load_base_model(), pictures, table, top=top, progress=progress)


def _check_names(names: Iterable[str]) -> list[str]:
    if isinstance(names, str):
        raise TypeError(f"name_table needs a list of names; write {names.split(',')!r}.")
    names = list(names)
    odd = [name for name in names if not isinstance(name, str) or not name.strip()]
    if odd:
        raise TypeError(f"name_table needs names that are words, not {first_few(odd)}.")
    doubled = [name for i, name in enumerate(names) if name in names[:i]]
    if doubled:
        raise ValueError(f"These names are given twice: {first_few(doubled)}; keep one of each.")
    if len(names) < 2:
        given = f"only {names[0]!r} is" if names else "none is"
        raise ValueError(f"Naming needs at least two names to choose from, but {given} given.")
    return names
