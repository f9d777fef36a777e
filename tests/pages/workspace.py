"""The folder in which the pages' snippets run: what their readers have, small."""

import numpy as np
from helpers import PHOTOS, command

from latem import Split, read_folder, train
from latem.datasets import write_split

# Percentages of six colours, long legs, a crest; length of the beak
TRAITS = ("red", "yellow", "blue", "black", "white", "green", "long legs", "crest", "beak length")
BIRDS = {
    "cardinal": (90, 0, 0, 10, 0, 0, 0, 100, 2),
    "goldfinch": (0, 80, 0, 20, 0, 0, 0, 0, 1),
    "crow": (0, 0, 0, 100, 0, 0, 0, 0, 5),
    "robin": (50, 0, 0, 30, 20, 0, 0, 0, 2),
    "bluebird": (20, 0, 70, 0, 10, 0, 0, 0, 2),
    "parakeet": (0, 30, 0, 0, 0, 70, 0, 0, 1),
    "oriole": (10, 60, 0, 30, 0, 0, 0, 0, 3),
    "swan": (0, 0, 0, 5, 95, 0, 0, 0, 7),
    "flamingo": (70, 0, 0, 5, 25, 0, 100, 0, 8),
    "heron": (0, 0, 50, 20, 30, 0, 100, 100, 9),
    "magpie": (0, 0, 20, 40, 40, 0, 0, 0, 4),
    "canary": (0, 100, 0, 0, 0, 0, 0, 0, 1),
    "blue jay": (0, 0, 70, 10, 20, 0, 0, 100, 3),
    "raven": (0, 0, 5, 95, 0, 0, 0, 0, 6),
    "macaw": (50, 20, 30, 0, 0, 0, 0, 0, 6),
    "egret": (0, 5, 0, 0, 95, 0, 100, 0, 9),
    "kingfisher": (20, 0, 60, 0, 20, 0, 0, 100, 7),  # no pictures
}
VAL = ("swan", "flamingo", "heron", "magpie", "canary")
UNSEEN = ("blue jay", "raven", "macaw", "egret")
N_EACH = 8
COLOURS = np.array([(255, 40, 40), (255, 230, 40), (50, 80, 255), (20, 20, 20), (250, 250, 250),
                    (40, 200, 60)])  # fmt: skip
RAW = """class,mass,diet,size,crest,legs
cardinal,45 g,seeds; insects,small,yes,short
goldfinch,14 g,seeds,small,no,short
crow,500 g,anything,large,no,
robin,77 g,worms; insects,medium,no,short
heron,1500 g,fish; frogs,large,yes,long
blue jay,85 g,nuts; insects,medium,yes,short
egret,950 g,fish; frogs,large,no,long
"""


def picture(bird, rng):
    """A piece of a photo in the colours of a bird: a temple if it has long legs, or a flower."""
    from PIL import Image

    *shares, legs, crest, beak = BIRDS[bird]
    photo = Image.open(PHOTOS / ("china.jpg" if legs else "flower.jpg")).convert("RGB")
    left, top, side = rng.integers(0, 150), rng.integers(0, 60), 260 + 10 * beak
    pixels = np.asarray(photo.crop((left, top, left + side, top + side)), float) / 255
    share = np.array(shares, float) / sum(shares)
    edges = np.round(np.cumsum(share) * side).astype(int)
    for first, last, colour in zip([0, *edges[:-1]], edges, COLOURS, strict=True):
        pixels[:, first:last] = 0.3 * pixels[:, first:last] + 0.7 * colour / 255
    if crest:
        pixels[: side // 5, :: side // 9] = 0
    return Image.fromarray((255 * pixels).astype(np.uint8))


def build(folder):
    """Write it all.

    - `photos/CLASS/*.jpg`, `traits.csv`, `unseen.txt`: pictures, traits of 17 birds, the unseen
    - `birds`: the dataset folder of them, with the class tables `att` and `hie`, val classes and
      held-out images; `birds.safetensors`: a model
    - `new.jpg`, `holiday/*.jpg`, `list.csv`: further pictures; `mine.csv`: names of two of them
    - `features.npy`, `labels.txt`, `birds.npz`, `images.csv`: vectors of images and their classes
    - `names.txt`, `raw.csv`, `sentences.csv`, `words.txt`, `new.csv`: names, raw traits, sentences
      (class, text), word vectors, and a class that is in no other table
    """
    rng = np.random.default_rng(0)
    for bird in list(BIRDS)[:-1]:
        (folder / "photos" / bird).mkdir(parents=True)
        for i in range(N_EACH):
            picture(bird, rng).save(folder / "photos" / bird / f"{i}.jpg")
    (folder / "holiday").mkdir()
    for i in range(8):
        picture(UNSEEN[i % 2], rng).save(folder / "holiday" / f"{i}.jpg")
    picture("blue jay", rng).save(folder / "new.jpg")

    def write(name, *lines):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def rows(birds):
        return [",".join(map(str, (bird, *traits))) for bird, traits in birds.items()]

    write("traits.csv", ",".join(("class", *TRAITS)), *rows(BIRDS))
    write(
        "new.csv", ",".join(("class", *TRAITS)), *rows({"toucan": (5, 20, 0, 55, 20, 0, 0, 0, 9)})
    )
    write("raw.csv", *RAW.splitlines())
    write("unseen.txt", *UNSEEN)
    write("names.txt", *BIRDS)
    write("list.csv", "image", *(f"holiday/{i}.jpg" for i in range(4)))
    write("mine.csv", "image,class", "holiday/0.jpg,blue jay", "holiday/1.jpg,raven")
    write("words.txt", *(
        " ".join((bird.replace(" ", "_"), *map(str, np.round(rng.normal(size=6), 3))))
        for bird in BIRDS
    ))  # fmt: skip
    write("sentences.csv", "class,text", *(
        f"{bird},{'a bird with long legs' if traits[6] else 'a bird of the garden'}"
        for bird, traits in BIRDS.items()
    ))  # fmt: skip

    for line in (
        f"embed classes {folder / 'names.txt'} --kind hie --hint animal --out {folder / 'hie.csv'}",
        f"embed images {folder / 'photos'} --table att={folder / 'traits.csv'} "
        f"--table hie={folder / 'hie.csv'} --unseen {folder / 'unseen.txt'} --held-out 0.25 "
        f"--val-share 0 --out {folder / 'birds'}",
    ):
        done = command(*line.split())
        assert not done.exit_code, done.output
    data = read_folder(folder / "birds")
    old = data.splits["standard"]
    seen = tuple(bird for bird in BIRDS if bird in old.train and bird not in VAL)
    split = Split(train=seen, val=VAL, test=UNSEEN, held_out=old.held_out)
    write_split(folder / "birds", "standard", split, replace=True)
    data = read_folder(folder / "birds")
    features = np.asarray(data.features)
    np.save(folder / "features.npy", features)
    np.savez(folder / "birds.npz", features=features, labels=np.asarray(data.labels))
    write("labels.txt", *map(str, data.labels))
    write("images.csv", ",".join(("image", "class", *(f"f{i}" for i in range(6)))), *(
        ",".join(map(str, (image, label, *row[:6])))
        for image, label, row in zip(data.images, data.labels, features, strict=True)
    ))  # fmt: skip
    train(folder / "birds", embedding="att").save(folder / "birds.safetensors")
    return folder
