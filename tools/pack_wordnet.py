"""Pack the nouns of WordNet 3.0 into the compact file that ships with latem.

    python tools/pack_wordnet.py [FOLDER]

FOLDER holds `data.noun`, `index.noun` and `noun.exc`, as Debian's `wordnet-base` puts them into
/usr/share/wordnet. The result is a gzipped text with one line per synset, by offset,

    offset TAB lexicographer file TAB lemmas TAB hypernyms

where a lemma is followed by `#2` if the synset is its second sense (nothing for the first) and
hypernyms, `@` and `@i` alike, are offsets. After an empty line come the irregular plurals, one
per line: plural, then its singulars. The same input always gives the same bytes. The licence,
which stands at the head of `data.noun`, is written beside it.
"""

import argparse
import gzip
import io
from pathlib import Path

from latem.core.atomic import atomic_path
from latem.embeddings.wordnet import LEXNAMES, WORDNET_FILE

LICENCE_NAME = "WORDNET-LICENCE.txt"
_FIRST_FILE = 3  # WordNet numbers its noun files from 3


def noun_text(folder: Path) -> str:
    """Text of the compact file."""
    senses = {}
    for line in _records(folder / "index.noun"):
        fields = line.split()
        offsets = fields[-int(fields[2]) :]
        senses.update({(fields[0], offset): i for i, offset in enumerate(offsets, start=1)})
    lines = []
    for line in _records(folder / "data.noun"):
        fields = line.split(" | ")[0].split()
        offset, n_lemmas = fields[0], int(fields[3], 16)
        lemmas = []
        for lemma in fields[4 : 4 + 2 * n_lemmas : 2]:
            sense = senses[lemma.lower(), offset]
            lemmas.append(lemma if sense == 1 else f"{lemma}#{sense}")
        pointers = fields[5 + 2 * n_lemmas :]
        kinds, targets = pointers[::4], pointers[1::4]
        parents = [to for kind, to in zip(kinds, targets, strict=True) if kind in ("@", "@i")]
        lexname = LEXNAMES[int(fields[1]) - _FIRST_FILE]
        lines.append("\t".join([offset, lexname, " ".join(lemmas), " ".join(parents)]))
    plurals = (folder / "noun.exc").read_text(encoding="ascii").splitlines()
    return "\n".join([*sorted(lines), "", *sorted(plurals)]) + "\n"


def licence_text(folder: Path) -> str:
    """Notice at the head of `data.noun`, without its line numbers."""
    with open(folder / "data.noun", encoding="ascii") as file:
        head = [line for line in file if line.startswith(" ")]
    notice = "\n".join(line.lstrip().partition(" ")[2].rstrip() for line in head)
    return (
        f"{WORDNET_FILE.name} holds the nouns of WordNet 3.0 (synsets, lemmas, order of senses,\n"
        "hypernyms, irregular plurals; no glosses), rearranged by tools/pack_wordnet.py of latem.\n"
        f"The licence of WordNet:\n\n{notice}\n"
    )


def pack(folder: Path, target: Path) -> None:
    """Write the compact file, and the licence beside it."""
    text = noun_text(folder)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(text.encode("ascii"))
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as temporary:
        Path(temporary).write_bytes(buffer.getvalue())
    with atomic_path(target.with_name(LICENCE_NAME)) as temporary:
        Path(temporary).write_bytes(licence_text(folder).encode("ascii"))
    n_synsets = text.partition("\n\n")[0].count("\n") + 1
    print(f"{target}: {target.stat().st_size / 1e6:.2f} MB, {n_synsets} synsets")


def _records(path: Path) -> list[str]:
    """Lines of a WordNet file after its notice."""
    with open(path, encoding="ascii") as file:
        return [line for line in file if not line.startswith(" ")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("/usr/share/wordnet"))
    parser.add_argument("--out", type=Path, default=WORDNET_FILE)
    arguments = parser.parse_args()
    pack(arguments.folder, arguments.out)
