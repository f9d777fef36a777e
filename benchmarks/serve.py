"""How much a server costs: `latem serve` against a bare route, and against the encoder itself.

Features: predictions per second through /api/predict, against a bare FastAPI route that reads the
same request, does the same matrix product, and answers with as many fields; both run by uvicorn
with the same protocol and loop. Then the same with every request scored by itself. Pictures:
pictures per second against `encoder.encode` of the same files. All on the loopback of one machine;
rounds alternate between what is compared, and medians of their ratios are told.

    python benchmarks/serve.py [--soak SECONDS] [--seconds SECONDS] [--rounds N]

--soak asks for features and pictures all the time, and replaces the model in the middle: no
request may fail, and the server's memory at the end is compared with that after the first tenth.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import re
import shutil
import statistics
import tempfile
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from http_load import form, load, request
from machine import DATA, keep, real_dataset, show

import latem

N_VECTORS = 64  # different requests
N_PICTURES, PER_REQUEST = 96, 8
CLIENTS = (1, 32)
TARGETS = {"features": 0.70, "pictures": 0.80}
SPAWN = multiprocessing.get_context("spawn")


def prepared(folder):
    """A model that is asked with features, one that knows pictures, and both their requests."""
    emoji = latem.load_emoji()
    path = real_dataset("cub")
    birds = emoji if path is None else latem.read_folder(path)
    models = {}
    for name, dataset in {"features": birds, "pictures": emoji}.items():
        model = latem.ESZSL(dataset.embeddings["att"], gamma=1e3, lam=1.0)
        X, y = dataset.training()
        latem.calibrate_answers(model.fit(X, y), X, y, cv=list(dataset.split().val))
        models[name] = folder / f"{name}.safetensors"
        model.save(models[name])
    X = np.asarray(birds.testing()[0][:N_VECTORS], np.float32)
    vectors = [json.dumps({"features": [row.tolist()]}).encode() for row in X]
    return birds.name, models, vectors, photos()


def photos():
    """JPEG files: photos of birds where there are some, else pieces of two photos."""
    found = sorted((DATA / "cub_photos" / "images").glob("*/*.jpg"))
    if found:
        step = max(1, len(found) // N_PICTURES)
        return "photos of birds", [path.read_bytes() for path in found[::step][:N_PICTURES]]
    import io

    from PIL import Image
    from sklearn.datasets import load_sample_images

    made = []
    for i, picture in zip(range(N_PICTURES), itertools.cycle(load_sample_images().images)):
        file = io.BytesIO()
        Image.fromarray(picture[i : i + 300, i : i + 400]).save(file, "JPEG")
        made.append(file.getvalue())
    return "pieces of two photos", made


# -- servers --------------------------------------------------------------------------------------


def run_ours(models, together, said):
    """Serve models; `together` tells whether requests are scored together."""
    from latem.server.app import create_app
    from latem.server.run import run_app
    from latem.server.settings import Settings
    from latem.server.work import Batcher

    settings = Settings(port=0)
    app = create_app(models, settings=settings)
    if not together:
        state = app.state.latem
        app.state.latem = replace(state, scoring=Batcher(state.work, 1, waiting=512, quick=0.004))
    run_app(app, settings, said.send)


def run_bare(model, said):
    """Serve what anybody would write in ten minutes."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    from latem.server.run import run_app
    from latem.server.settings import Settings

    class Wanted(BaseModel):
        features: list[list[float]]

    app = FastAPI()
    model = latem.load(model)
    names = model.candidate_names("unseen").tolist()
    width = model.n_features_in_
    scores_of_one = model.decision_function(np.eye(width, dtype=np.float32), "unseen")
    weights = np.ascontiguousarray(scores_of_one, np.float32)

    @app.post("/api/predict")
    async def predict(wanted: Wanted):
        X = np.array(wanted.features, np.float32)
        scores = X @ weights
        answers = []
        for number, row in enumerate(scores):
            best = np.argsort(-row)[:5]
            weight = np.exp(row - row.max())
            shares = weight / weight.sum()
            classes = [
                {
                    "class": names[i], "probability": float(shares[i]), "score": float(row[i]),
                    "label": names[i], "symbol": "", "picture": None, "seen": False,
                    "invented": False,
                }
                for i in best
            ]  # fmt: skip
            answers.append(
                {
                    "picture": f"image {number}", "answer": names[best[0]], "verdict": "named",
                    "strangeness": 0.5, "classes": classes,
                }
            )  # fmt: skip
        return {
            "model": "bare", "version": 1, "among": f"among the {len(names)} unseen classes",
            "temperature": 1.0, "false_accept_rate": 0.05, "answers": answers,
        }  # fmt: skip

    run_app(app, Settings(port=0), said.send)


@contextmanager
def running(target, *arguments):
    """Place of a server in a process of its own."""
    hear, said = SPAWN.Pipe()
    process = SPAWN.Process(target=target, args=(*arguments, said))
    process.start()
    try:
        if not hear.poll(180):
            raise RuntimeError("The server did not start.")
        parts = urlsplit(hear.recv())
        yield parts.hostname, parts.port
    finally:
        process.terminate()
        process.join(20)


def memory(place):
    with urllib.request.urlopen(f"http://{place[0]}:{place[1]}/metrics") as answer:
        text = answer.read().decode()
    return float(re.search(r"^process_resident_memory_bytes (\S+)$", text, re.MULTILINE).group(1))


# -- what is measured -----------------------------------------------------------------------------


def medians(found):
    """Medians of several measurements of the same thing."""
    failures = [text for one in found for text in one["failures"]]
    if failures:
        raise RuntimeError(f"{len(failures)} requests failed: {failures[0]}")
    return {
        key: statistics.median(one[key] for one in found) for key in found[0] if key != "failures"
    }


def compare_features(pool, models, vectors, seconds, rounds):
    """Ours, ours without batching, and the bare route, in turns."""
    requests = [request("/api/predict", body) for body in vectors]
    files = {"features": str(models["features"])}
    found = {}
    with (
        running(run_ours, files, True) as ours,
        running(run_ours, files, False) as alone,
        running(run_bare, files["features"]) as bare,
    ):
        places = {"ours": ours, "alone": alone, "bare": bare}
        for place in places.values():
            pool.submit(load, place, requests, 4, 1).result()
        for n_clients in CLIENTS:
            measured = {name: [] for name in places}
            for _ in range(rounds):
                for name, place in places.items():
                    job = pool.submit(load, place, requests, n_clients, seconds)
                    measured[name].append(job.result())
            found[n_clients] = {name: medians(several) for name, several in measured.items()}
            for title, base in (("ratio", "bare"), ("batching", "alone")):
                found[n_clients][title] = statistics.median(
                    one["rate"] / other["rate"]
                    for one, other in zip(measured["ours"], measured[base], strict=True)
                )
    return found


def encode_files(folder, rounds, said, go):
    """Encode the same files again and again, when told to; the speed of each time."""
    from latem.features.encoders import load_encoder

    encoder = load_encoder("efficientnet-lite0")
    files = sorted(Path(folder).glob("*.jpg"))
    encoder.encode(files[:32])
    said.send(None)
    for _ in range(rounds):
        go.recv()
        start = time.perf_counter()
        encoder.encode(files)
        said.send(len(files) / (time.perf_counter() - start))


def compare_pictures(pool, models, pictures, folder, seconds, rounds):
    """Pictures per second through the server, and by the encoder itself, in turns."""
    for number, content in enumerate(pictures):
        (folder / f"{number:03d}.jpg").write_bytes(content)
    parts = [pictures[i : i + PER_REQUEST] for i in range(0, len(pictures), PER_REQUEST)]
    requests = [form("/api/predict", part) for part in parts]
    hear, said = SPAWN.Pipe()
    go, told = SPAWN.Pipe()
    encoding = SPAWN.Process(target=encode_files, args=(str(folder), rounds, said, told))
    encoding.start()
    hear.recv()
    served, own = [], []
    with running(run_ours, {"pictures": str(models["pictures"])}, True) as place:
        pool.submit(load, place, requests, 2, 2).result()
        for _ in range(rounds):
            served.append(pool.submit(load, place, requests, 4, 2 * seconds).result())
            go.send(None)
            own.append(hear.recv())
    encoding.join(20)
    ratios = [one["rate"] * PER_REQUEST / other for one, other in zip(served, own, strict=True)]
    found = medians(served)
    return {
        **{key: found[key] for key in ("p50", "p99", "cpu")},
        "served": found["rate"] * PER_REQUEST,
        "encoder": statistics.median(own),
        "ratio": statistics.median(ratios),
    }


def soak(pool, models, vectors, pictures, seconds):
    """Constant load, with a model swap in the middle: failures, and memory over time."""
    served = models["pictures"].with_name("soak.safetensors")
    shutil.copy(models["pictures"], served)
    width = int(latem.load(served).n_features_in_)
    rng = np.random.default_rng(0)
    rows = rng.random((N_VECTORS, width), np.float32)
    features = [
        request("/api/predict", json.dumps({"features": [row.tolist()]}).encode()) for row in rows
    ]
    forms = [form("/api/predict", pictures[i : i + 2]) for i in range(0, 32, 2)]
    with running(run_ours, {"soak": str(served)}, True) as place:
        jobs = [
            pool.submit(load, place, features, 8, seconds),
            pool.submit(load, place, forms, 2, seconds),
        ]
        start = time.monotonic()
        sizes = []
        swapped = False
        while time.monotonic() - start < seconds:
            time.sleep(seconds / 40)
            sizes.append((time.monotonic() - start, memory(place)))
            if not swapped and sizes[-1][0] > seconds / 2:
                again = served.with_name("again")
                shutil.copy(models["pictures"], again)
                os.replace(again, served)
                swapped = True
        done = [job.result() for job in jobs]
        with urllib.request.urlopen(f"http://{place[0]}:{place[1]}/api/about") as answer:
            version = json.load(answer)["models"][0]["version"]
    early = [size for second, size in sizes if second <= seconds / 10] or [sizes[0][1]]
    return {
        "seconds": seconds,
        "answers": {"features": done[0]["n"], "pictures": 2 * done[1]["n"]},
        "failures": sum(len(one["failures"]) for one in done),
        "version": version,
        "mb_after_a_tenth": early[-1] / 2**20,
        "mb_at_the_end": sizes[-1][1] / 2**20,
        "growth": sizes[-1][1] / early[-1],
        "mb": [round(size / 2**20) for _, size in sizes[:: max(1, len(sizes) // 10)]],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--soak", type=float, default=60, help="seconds; 0 leaves it out")
    parser.add_argument("--seconds", type=float, default=3, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["features", "pictures", "soak"], help="one part")
    given = parser.parse_args()
    parts = [given.only] if given.only else ["features", "pictures", "soak"]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(2, SPAWN) as pool:
        name, models, vectors, (kind, pictures) = prepared(Path(folder))
        found = {"dataset": name, "pictures_are": kind}
        if "features" in parts:
            found["features"] = compare_features(pool, models, vectors, given.seconds, given.rounds)
            show_features(name, found["features"])
        if "pictures" in parts:
            found["pictures"] = compare_pictures(
                pool, models, pictures, Path(folder), given.seconds, given.rounds
            )
            one = found["pictures"]
            show(
                f"Pictures ({kind}), {PER_REQUEST} in a request, 4 clients",
                ("", "pictures/s", "ratio", "target", "clients' CPU"),
                [
                    ("encoder.encode", f"{one['encoder']:.1f}", "", "", ""),
                    ("latem serve", f"{one['served']:.1f}", f"{one['ratio']:.2f}",
                     f"≥ {TARGETS['pictures']:.2f}", f"{one['cpu']:.0%}"),
                ],
            )  # fmt: skip
        if "soak" in parts and given.soak:
            found["soak"] = soak(pool, models, vectors, pictures, given.soak)
            show("Soak", ("", "value"), list(found["soak"].items()))
    if given.only is None:
        keep("serve", found)


def show_features(name, found):
    rows = []
    for n_clients, one in found.items():
        for title, key in (
            ("bare route", "bare"), ("latem serve", "ours"), ("each by itself", "alone")
        ):  # fmt: skip
            part = one[key]
            ratio = f"{one['ratio']:.2f}" if key == "ours" else ""
            target = f"≥ {TARGETS['features']:.2f}" if key == "ours" else ""
            rows.append(
                (f"{title}, {n_clients} clients", f"{part['rate']:.0f}", f"{part['p50']:.1f}",
                 f"{part['p99']:.1f}", ratio, target, f"{part['cpu']:.0%}")
            )  # fmt: skip
        rows.append((f"gain of batching, {n_clients} clients", f"{one['batching']:.2f}"))
    header = ("", "answers/s", "p50 ms", "p99 ms", "ratio", "target", "clients' CPU")
    show(f"Features of {name}", header, rows)


if __name__ == "__main__":
    main()
