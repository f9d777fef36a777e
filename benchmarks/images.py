"""Speed of `latem embed images`, as a ratio to the bare encoder measured in the same run.

The bare encoder gets pixels that are already prepared, in batches of the same size and with the
same threads. The pipeline starts from files: it finds, reads, decodes, shrinks, encodes and writes
them. Both are timed in turn: each run of the pipeline is compared with the bare encoder's runs just
before and after it, and the median of the ratios counts, because other work on the machine slows
down either. The ratio of processor times, which other work hardly changes, is shown beside it.
Pictures: the real photos `cub_photos` if they are there (set LATEM_DATA to the folder that holds
them), else scikit-learn's two sample photos, many times.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import DATA, keep, show
from PIL import Image
from sklearn.datasets import load_sample_image

from latem.core.threads import resolve_threads
from latem.features import embed_pictures, find_pictures, load_encoder

BAR = 0.8


def photos(folder):
    """Folder of class folders with real photos."""
    if (DATA / "cub_photos" / "images").is_dir():
        return DATA / "cub_photos" / "images", "cub_photos"
    print(f"cub_photos: not found under {DATA}; two sample photos are used instead.")
    for name in ("china", "flower"):
        (folder / name).mkdir()
        picture = Image.fromarray(load_sample_image(f"{name}.jpg"))
        for i in range(160):
            picture.save(folder / name / f"{i}.jpg")
    return folder, "two sample photos"


def timed(task):
    """Seconds that a task takes, by the clock and of the processors."""
    start, start_cpu = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - start, time.process_time() - start_cpu


def encode_all(encoder, batches):
    for batch in batches:
        encoder.encode_batch(batch)


def embed_all(source, classes, encoder, batch_size, folder):
    """From files to a complete dataset folder."""
    shutil.rmtree(folder / "dataset", ignore_errors=True)
    made = embed_pictures(
        source,
        folder / "dataset",
        {"one": (classes, np.eye(len(classes)))},
        encoder=encoder,
        unseen=classes[:1],
        batch_size=batch_size,
    )
    assert not made.skipped


def main(repeats, batch_size):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "pictures").mkdir()
        source, title = photos(folder / "pictures")
        pictures, _ = find_pictures(source)
        classes = sorted({picture.label for picture in pictures})
        encoder = load_encoder("efficientnet-lite0")
        pixels = np.stack([encoder.prepare(picture.path) for picture in pictures])
        batches = [pixels[i : i + batch_size] for i in range(0, len(pixels), batch_size)]
        bare, pipeline = [timed(lambda: encode_all(encoder, batches))], []
        for _ in range(repeats):
            pipeline.append(timed(lambda: embed_all(source, classes, encoder, batch_size, folder)))
            bare.append(timed(lambda: encode_all(encoder, batches)))
    around = (np.array(bare[:-1]) + np.array(bare[1:])) / 2  # rounds × (clock, processors)
    ratios = around / np.array(pipeline)
    n = len(pictures)
    ratio, cpu_ratio = (float(value) for value in np.median(ratios, axis=0))
    show(
        f"{title}: {n} pictures, {encoder.name}, batches of {batch_size}",
        ("", "bare encoder, pictures/s", "embed images, pictures/s", "ratio", "of processor times"),
        [
            (f"round {i}", f"{n / b[0]:.0f}", f"{n / p[0]:.0f}", f"{r[0]:.2f}", f"{r[1]:.2f}")
            for i, (b, p, r) in enumerate(zip(around, pipeline, ratios, strict=True), start=1)
        ],
    )
    print(f"Median ratio {ratio:.2f}, bar ≥ {BAR}; of processor times {cpu_ratio:.2f}")
    content = {
        "pictures": title,
        "n_pictures": n,
        "encoder": encoder.name,
        "batch_size": batch_size,
        "threads": resolve_threads(None),
        "bare_per_second": float(n / np.median(around[:, 0])),
        "pipeline_per_second": float(n / np.median([clock for clock, _ in pipeline])),
        "ratio": ratio,
        "bar": BAR,
        "ratios": ratios[:, 0].tolist(),
        "cpu_ratio": cpu_ratio,
    }
    keep("images", content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    main(arguments.repeats, arguments.batch_size)
