"""What is killed: a table of everything that writes for longer than a moment.

Each row says how its inputs are made, what is there before it begins, what is run, and which of the
files that it leaves may differ from run to run, and why. Two trees of files are the same if all
files are there, hidden ones included, with the same bytes.
"""

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from matlab_files import gbu_parts, write_gbu
from PIL import Image

import latem
from latem.cli import app
from latem.cli.common import failures

CLASSES = [f"kind {i}" for i in range(6)]


@dataclass(frozen=True)
class Operation:
    """One row of the table.

    Attributes
    ----------
    name : str
    prepare : callable
        Makes the inputs in a folder, once.
    run : callable
        Does it, with the folder of inputs and the one to write to; ends as a command does.
    before : callable
        Puts what was there earlier into the folder to write to.
    keeps : tuple of str
        Patterns of the files that a killed run leaves for the next one to go on from. Hidden files
        may be in any state in between; of these, those that are not hidden as well.
    varies : mapping of str to tuple of str
        Fields of JSON files that are times, or tell how much of the work an earlier run had done.
    times : tuple of str
        Patterns of files that hold nothing but a time.
    folder : str, optional
        Folder that appears as a whole.
    refuses : str, optional
        What is said by a run that finds everything done.
    busy : str, optional
        What is said by a second run while the first one works. Without, each of them writes whole
        files, and the last one stays.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path, Path], None]
    before: Callable[[Path, Path], None] = lambda inputs, place: None
    keeps: tuple[str, ...] = ()
    varies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    times: tuple[str, ...] = ()
    folder: str | None = None
    refuses: str | None = None
    busy: str | None = None


def command(*arguments):
    """Run a command line in this process; it ends in SystemExit."""
    app([str(argument) for argument in arguments])


def world(**sizes):
    chosen = {"n_seen": 16, "n_unseen": 5, "n_images": 6, "n_features": 12, **sizes}
    return latem.make_latent_world(random_state=0, **chosen)


# -- fit, with a checkpoint ---------------------------------------------------------------------


def prepare_fit(inputs):
    latem.write_folder(world(n_images=20), inputs / "data")


def run_fit(inputs, place):
    dataset = latem.read_folder(inputs / "data")
    model = latem.LatEm(dataset.embeddings["att"], n_maps=4, n_epochs=90, random_state=0)
    with failures():
        model.fit(*dataset.training(), checkpoint=place / "training", checkpoint_every=3)
        model.save(place / "model.safetensors")


# -- save ---------------------------------------------------------------------------------------


def prepare_save(inputs):
    data = world(n_features=600)
    for name, seed in (("old", 0), ("new", 1)):
        model = latem.LatEm(data.embeddings["att"], n_maps=16, n_epochs=1, random_state=seed)
        model.fit(*data.training()).save(inputs / name)


def run_save(inputs, place):
    model = latem.load(inputs / "new")
    with failures():
        model.save(place / "model.safetensors")


def old_model(inputs, place):
    (place / "model.safetensors").write_bytes((inputs / "old").read_bytes())


# -- train --------------------------------------------------------------------------------------


def prepare_train(inputs):
    data = world()
    latem.write_folder(data, inputs / "data")
    latem.ESZSL(data.embeddings["att"]).fit(*data.training()).save(inputs / "old")


def run_train(inputs, place):
    command(
        "train", inputs / "data", "--out", place / "model.safetensors", "--preset", "paper",
        "--maps", 2, "--step", 0.1, "--epochs", 5, "-q",
    )  # fmt: skip


# -- reproduce ----------------------------------------------------------------------------------


def prepare_reproduce(inputs):
    latem.write_folder(world(n_seen=12, n_unseen=4, n_images=4), inputs / "data" / "cub")


def run_reproduce(inputs, place):
    command(
        "reproduce", "table2", "--data", inputs / "data", "--out", place / "run", "--epochs", 1,
        "--jobs", 2, "-q",
    )  # fmt: skip


# -- pictures -----------------------------------------------------------------------------------


def prepare_pictures(inputs, n=24):
    """Small pictures of six kinds, a few of them broken, traits, and a network that is quick."""
    from onnx import TensorProto
    from tiny_onnx import tiny_onnx

    rng = np.random.default_rng(0)
    lines = []
    for name in CLASSES:
        colour = rng.uniform(40, 215, 3)
        lines.append(f"{name}," + ",".join(f"{value:.1f}" for value in colour))
        (inputs / "photos" / name).mkdir(parents=True)
        for i in range(n):
            pixels = np.clip(rng.normal(colour, 30, (20, 20, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(inputs / "photos" / name / f"{i:03d}.png")
        (inputs / "photos" / name / "005.png").write_text("no picture")
    (inputs / "traits.csv").write_text("class,red,green,blue\n" + "\n".join(lines) + "\n")
    (inputs / "unseen.txt").write_text("\n".join(CLASSES[4:]) + "\n")
    tiny_onnx(inputs / "tiny.onnx", ("n", 3, 16, 16), TensorProto.FLOAT)


def embed(inputs, out):
    return (
        "embed", "images", inputs / "photos", "--table", f"att={inputs / 'traits.csv'}",
        "--unseen", inputs / "unseen.txt", "--encoder", inputs / "tiny.onnx", "--size", 16,
        "--mean", "0,0,0", "--std", "1,1,1", "--batch-size", 2, "--out", out, "-q",
    )  # fmt: skip


def run_embed(inputs, place):
    command(*embed(inputs, place / "set"))


def prepare_predict(inputs):
    from helpers import command as tried

    prepare_pictures(inputs, n=40)
    for line in (
        embed(inputs, inputs / "set"),
        ("train", inputs / "set", "--out", inputs / "model", "--model", "ESZSL", "-q"),
    ):
        done = tried(*line)
        assert done.exit_code == 0, done.output


def run_predict(inputs, place):
    command("predict", inputs / "model", inputs / "photos", "--out", place / "answers.csv", "-q")


def prepare_features(inputs):
    data = world(n_features=800)
    model = latem.ESZSL(data.embeddings["att"]).fit(*data.training())
    model.save(inputs / "model")
    np.save(inputs / "rows.npy", np.resize(data.features, (75_000, 800)).astype(np.float16))


def run_features(inputs, place):
    command(
        "predict", inputs / "model", inputs / "rows.npy", "--out", place / "answers.csv",
        "--top", 1, "-q",
    )  # fmt: skip


def old_answers(inputs, place):
    (place / "answers.csv").write_text("picture,class\nearlier.jpg,okapi\n")


# -- datasets -----------------------------------------------------------------------------------


def prepare_convert(inputs):
    data = world(n_images=40, n_features=200)
    np.savez(inputs / "data.npz", features=data.features, labels=data.labels)
    data.embeddings["att"].to_frame().to_csv(inputs / "att.csv")
    (inputs / "unseen.txt").write_text("\n".join(data.split().test) + "\n")


def run_convert(inputs, place):
    command(
        "data", "convert", "npz", inputs / "data.npz", "--table", inputs / "att.csv",
        "--unseen", inputs / "unseen.txt", "--out", place / "set",
    )  # fmt: skip


def prepare_fetch(inputs):
    """A zip file with a dataset folder and a pair of MATLAB files."""
    latem.write_folder(world(n_images=30, n_features=100), inputs / "worlds")
    write_gbu(inputs / "birds", gbu_parts(n=200, d=40))
    with zipfile.ZipFile(inputs / "all.zip", "w") as archive:
        for file in sorted(path for path in inputs.rglob("*/*") if path.is_file()):
            archive.write(file, file.relative_to(inputs))


def run_fetch(inputs, place):
    address = (inputs / "address").read_text()
    command("data", "fetch", f"{address}/all.zip", "--out", place, "-q")


def prepare_split(inputs):
    latem.write_folder(world(), inputs / "data")


def old_dataset(inputs, place):
    latem.write_folder(latem.read_folder(inputs / "data"), place / "set")


def run_split(inputs, place):
    command("data", "split", place / "set", "--sizes", "12,4,5", "--held-out", 0.2)


def run_redraw(inputs, place):
    command("data", "split", place / "set", "--keep-unseen", "standard", "--val", 2, "--replace")


EXISTS = "exists already; name a new folder."
# Of run.json: how long it took, and how much of it an earlier run had done.
RUN_JSON = ("seconds", "ratio_to_numpy", "trained", "kept")

OPERATIONS = {
    row.name: row
    for row in (
        Operation(
            "fit", prepare_fit, run_fit, keeps=("training",),
            busy="Another training writes to the checkpoint",
        ),
        Operation("save", prepare_save, run_save, old_model),
        Operation("train", prepare_train, run_train, old_model),
        Operation(
            "reproduce", prepare_reproduce, run_reproduce, keeps=("run/cells/*.json",),
            varies={"run/run.json": RUN_JSON}, times=("run/cells/*.seconds",),
            busy="Another run is writing to",
        ),
        Operation(
            "embed images", prepare_pictures, run_embed, keeps=(".set.embedding/0*.safetensors",),
            folder="set", refuses=EXISTS, busy="Another run is making",
        ),
        Operation(
            "predict", prepare_predict, run_predict, old_answers,
            keeps=(".answers.csv.answers/journal.jsonl",), busy="Another run is writing",
        ),
        Operation(
            "predict features", prepare_features, run_features, old_answers,
            keeps=(".answers.csv.answers/answers.journal",), busy="Another run is writing",
        ),
        Operation("data convert", prepare_convert, run_convert, folder="set", refuses=EXISTS),
        Operation(
            "data fetch", prepare_fetch, run_fetch, keeps=("all.zip.part", "all.zip"),
            busy="Another process is fetching",
        ),
        Operation(
            "data split", prepare_split, run_split, old_dataset,
            keeps=("set/splits/random*.toml",), refuses="already has splits",
        ),
        Operation("data split --replace", prepare_split, run_redraw, old_dataset),
    )
}  # fmt: skip


def without_times(operation, name, content):
    """Bytes of a file as they are compared: without the fields that the table names."""
    if any(Path(name).match(pattern) for pattern in operation.times):
        return b""
    for pattern, fields in operation.varies.items():
        if Path(name).match(pattern):
            left = {key: value for key, value in json.loads(content).items() if key not in fields}
            return json.dumps(left).encode()
    return content
