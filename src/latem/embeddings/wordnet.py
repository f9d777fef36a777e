"""The nouns of WordNet 3.0, which ship with the library: words, their senses, what is more general.

Its offsets are ImageNet's ids. `tools/pack_wordnet.py` makes the data file; the notice of its
licence lies beside it.
"""

from __future__ import annotations

import difflib
import functools
import gzip
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

WORDNET_FILE = Path(__file__).parent / "data" / "wordnet_nouns.txt.gz"
# fmt: off
LEXNAMES = (
    "Tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication",
    "event", "feeling", "food", "group", "location", "motive", "object", "person", "phenomenon",
    "plant", "possession", "process", "quantity", "relation", "shape", "state", "substance", "time",
)
# fmt: on
# regular plurals and their singulars, as in WordNet's own `morphy`
_PLURALS = ("s", "ses", "xes", "zes", "ches", "shes", "men", "ies")
_SINGULARS = ("", "s", "x", "z", "ch", "sh", "man", "y")
_LONGEST_ENDING = 10  # by how many letters a plural is longer than its singular, at most


class Synset(NamedTuple):
    """A set of synonyms: one meaning, with its place in the hierarchy.

    Attributes
    ----------
    offset : int
        Its number in WordNet 3.0.
    lemmas : tuple of str
        Its words, with underscores for spaces.
    lexname : str
        WordNet's file for its kind, such as "noun.animal".
    hypernyms : tuple of int
        Offsets of the more general synsets, instances included.
    number : int
        Which sense of its first lemma it is, from 1.
    """

    offset: int
    lemmas: tuple[str, ...]
    lexname: str
    hypernyms: tuple[int, ...]
    number: int

    @property
    def id(self) -> str:
        """ImageNet's way to write the offset, such as "n02391049"."""
        return f"n{self.offset:08d}"

    @property
    def name(self) -> str:
        """First lemma and number of its sense, such as "zebra.n.01"."""
        return f"{self.lemmas[0].lower()}.n.{self.number:02d}"


class WordNet:
    """The nouns of WordNet 3.0; get it from `load_wordnet`.

    Parameters
    ----------
    text : str
        What `tools/pack_wordnet.py` writes.

    Examples
    --------
    >>> wordnet = load_wordnet()
    >>> [synset.name for synset in wordnet.synsets("Polar Bears")]
    ['ice_bear.n.01']
    >>> [synset.name for synset in wordnet.hypernyms("zebra.n.01")]
    ['equine.n.01']
    """

    def __init__(self, text: str):
        nouns, _, plurals = text.partition("\n\n")
        self._synsets: dict[int, Synset] = {}
        self._senses: dict[str, list[tuple[int, int]]] = {}  # lemma → (number, offset)
        for line in nouns.splitlines():
            number, lexname, words, parents = line.split("\t")
            offset = int(number)
            pairs = [word.partition("#") for word in words.split(" ")]
            for lemma, _, sense in pairs:
                self._senses.setdefault(lemma.lower(), []).append((int(sense or 1), offset))
            self._synsets[offset] = Synset(
                offset,
                tuple([lemma for lemma, _, _ in pairs]),
                f"noun.{lexname}",
                tuple(map(int, parents.split())),
                int(pairs[0][2] or 1),
            )
        self._plurals = {line.split()[0]: line.split()[1:] for line in plurals.splitlines()}
        self._spellings: dict[str, list[str]] = {}  # letters and digits → lemmas
        for lemma in self._senses:
            # class lists often write Clark's nutcracker without its 's
            for spelling in {lemma, lemma.replace("'s", "")}:
                key = in_words(spelling).replace(" ", "")
                self._spellings.setdefault(key, []).append(lemma)
        # No name of more letters and digits is known; a plural may be a little longer.
        self.longest = max(map(len, self._spellings), default=0) + _LONGEST_ENDING

    def __len__(self) -> int:
        return len(self._synsets)

    def __contains__(self, offset: int) -> bool:
        return offset in self._synsets

    def __iter__(self) -> Iterator[Synset]:
        return iter(self._synsets.values())

    def synsets(self, name: str) -> list[Synset]:
        """Senses of a word or phrase, the first sense first; none if it is unknown.

        Case, accents, spaces, underscores and hyphens do not matter, 's may be missing, and the
        name may be a plural.
        """
        words = in_words(name)
        for phrase in [words, *self.singulars(words)]:
            lemmas = self._spellings.get(phrase.replace(" ", ""), [])
            lemmas = [lemma for lemma in lemmas if in_words(lemma) == phrase] or lemmas
            if lemmas:
                offsets = [offset for lemma in lemmas for _, offset in sorted(self._senses[lemma])]
                return [self._synsets[offset] for offset in dict.fromkeys(offsets)]
        return []

    def synset(self, key: Synset | str | int) -> Synset:
        """Synset by id ("n02391049"), by name ("zebra.n.01") or by offset (2391049)."""
        if isinstance(key, Synset):
            return key
        text = str(key).strip()
        by_id = re.fullmatch(r"n?(\d{1,8})", text)
        if by_id and int(by_id[1]) in self._synsets:
            return self._synsets[int(by_id[1])]
        by_name = re.fullmatch(r"(.+)\.n\.(\d+)", text)
        if by_name:
            senses = dict(self._senses.get(by_name[1].lower().replace(" ", "_"), []))
            if int(by_name[2]) in senses:
                return self._synsets[senses[int(by_name[2])]]
        senses_of = self.synsets(by_name[1] if by_name else text)
        known = f"; it has {listed(senses_of)}" if senses_of else ""
        raise ValueError(
            f"WordNet has no synset {key!r}{known}; give an id such as 'n02391049', a name such as "
            f"'zebra.n.01' or an offset."
        )

    def hypernyms(self, synset: Synset | str | int) -> list[Synset]:
        """The synsets one step more general."""
        return [self._synsets[offset] for offset in self.synset(synset).hypernyms]

    def ancestors(self, synset: Synset | str | int) -> dict[int, int]:
        """Offset of every more general synset → the fewest steps up to it (0 for itself)."""
        queue = [self.synset(synset).offset]
        steps = {queue[0]: 0}
        for offset in queue:  # grows while it is walked: breadth first
            for parent in self._synsets[offset].hypernyms:
                if parent not in steps:
                    steps[parent] = steps[offset] + 1
                    queue.append(parent)
        return steps

    def near(self, name: str) -> list[str]:
        """Known words spelled nearly like a name, or like its last word."""
        words = in_words(name)
        for text, cutoff in ((words, 0.8), (words.split(" ")[-1], 0.6)):
            lemmas = (lemma.replace("_", " ") for lemma in self._senses if lemma[0] == text[:1])
            near = difflib.get_close_matches(text, lemmas, n=3, cutoff=cutoff)
            if near:
                return near
        return []

    def singulars(self, words: str) -> list[str]:
        """What a phrase may be the plural of; only its last word changes."""
        head, space, last = words.rpartition(" ")
        found = [singular.replace("_", " ") for singular in self._plurals.get(last, [])]
        if len(last) > 2 and not last.endswith("ss"):
            for plural, singular in zip(_PLURALS, _SINGULARS, strict=True):
                if last.endswith(plural):
                    found.append(last.removesuffix(plural) + singular)
        return [head + space + singular for singular in found]


@functools.cache
def load_wordnet() -> WordNet:
    """The bundled WordNet, read once (in about a second).

    >>> len(load_wordnet())
    82115
    """
    return WordNet(gzip.decompress(WORDNET_FILE.read_bytes()).decode("ascii"))


def in_words(name: str) -> str:
    """Lower-case words with single spaces; apostrophes and accents go."""
    name = name.lower().replace("'", "").replace("’", "")
    if not name.isascii():
        name = "".join(
            c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)
        )
    return " ".join(re.findall(r"[^\W_]+", name))


def listed(senses: Sequence[Synset]) -> str:
    """Senses as text, each with its kind and words."""
    return "; ".join(f"{s.name} ({s.lexname}): {', '.join(s.lemmas)}" for s in senses)
