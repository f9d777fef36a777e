"""Real pictures and a model trained on them, for the tests of this room."""

import numpy as np
import pytest
from helpers import command


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """Twelve classes made of two real photos: pieces of a flower and of a temple in tints."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    pictures = dict(zip(("temple", "flower"), load_sample_images().images, strict=True))
    rows = {}
    for thing, picture in pictures.items():
        for tint, colour in (
            ("red", (1, 0.4, 0.4)), ("green", (0.4, 1, 0.4)), ("blue", (0.4, 0.4, 1)),
            ("dark", (0.4, 0.4, 0.4)), ("yellow", (1, 1, 0.3)), ("plain", (1, 1, 1)),
        ):  # fmt: skip
            name = f"{tint} {thing}"
            rows[name] = [*colour, thing == "temple", thing == "flower"]
            (folder / "images" / name).mkdir(parents=True)
            for i in range(4):
                top, left = rng.integers(0, 150, 2)
                piece = picture[top : top + 260, left : left + 300] * np.array(colour)
                Image.fromarray(piece.astype(np.uint8)).save(folder / "images" / name / f"{i}.jpg")
    header = "class,red,green,blue,temple,flower\n"
    lines = [f"{name}," + ",".join(str(float(v)) for v in row) for name, row in rows.items()]
    (folder / "traits.csv").write_text(header + "\n".join(lines) + "\n")
    (folder / "unseen.txt").write_text("yellow temple\nyellow flower\n")
    return folder


@pytest.fixture(scope="session")
def trained(photos, tmp_path_factory):
    """The three commands of the README."""
    work = tmp_path_factory.mktemp("work")
    run = command(
        "embed", "images", photos / "images", "--table", f"att={photos / 'traits.csv'}",
        "--unseen", photos / "unseen.txt", "--out", work / "data",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    run = command(
        "train", work / "data", "--embedding", "att", "--out", work / "m.safetensors",
        "--model", "ESZSL", "-q",
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert "on 2 unseen classes" in run.output
    return work / "m.safetensors"
