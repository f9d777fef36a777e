"""Make the README's picture: drawings of things that were never seen, and what they are taken for.

    python tools/readme_picture.py [--out docs/static/unseen.png]

A committee learns from the seen emoji, as `latem demo` and `latem train` have it learn. Then it
names twelve drawings of unseen things, taken at random from one set, from their words alone. The
drawings are those of Noto, which Chromium shows with the font "Noto Color Emoji" (Debian:
chromium, fonts-noto-color-emoji); no drawing is in the package. Beside the picture goes a JSON file
with what it shows.
"""

import argparse
import html
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import latem
from latem.core.atomic import atomic_path, write_text
from latem.metrics import mean_class_accuracy

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "static" / "unseen.png"
SOURCE, N_SHOWN, N_COLUMNS = "noto", 12, 6
WIDTH, SCALE = 860, 2

_PAGE = """<!doctype html>
<meta charset="utf-8">
<style>
  body { margin: 0; background: #fff; color: #1c1e21; font: 15px/1.3 "DejaVu Sans", sans-serif }
  main { display: grid; grid-template-columns: repeat(COLUMNS, 1fr); gap: 10px; padding: 10px }
  figure { margin: 0; padding: 12px 4px 10px; text-align: center; border-radius: 8px;
           border: 1px solid #d4d7dc; border-top: 4px solid #b3261e; background: #fbfbfc }
  figure.right { border-top-color: #1a7f37 }
  .drawing { font: 52px/1.15 "Noto Color Emoji" }
  .named { font-weight: bold; margin-top: 6px }
  .sure { color: #555b63 }
  .truth { color: #b3261e }
  .right .truth { color: #1a7f37 }
  .named, .sure, .truth { font-size: 13px; min-height: 1.3em }
</style>
<main>FIGURES</main>
"""


def answers(dataset: Any, model: Any, split: str = "standard") -> dict[str, Any]:
    """What the picture shows: some drawings of one set, what they are called, and how surely."""
    rows = dataset.rows(dataset.split(split).test)
    X, y = dataset.testing(split)
    given = model.answer(X, classes="unseen")
    names = np.array([answer.names[0] for answer in given])
    of_source = [i for i, row in enumerate(rows) if str(dataset.images[row]).endswith(f" {SOURCE}")]
    chosen = np.random.default_rng(0).choice(of_source, min(N_SHOWN, len(of_source)), replace=False)
    return {
        "n_classes": len(dataset.split(split).test),
        "accuracy": round(float(mean_class_accuracy(y, names)), 4),
        "drawings": [
            {
                "character": dataset.info["characters"][str(y[i])],
                "class": str(y[i]),
                "named": str(names[i]),
                "probability": round(float(given[i].probabilities[0]), 4),
            }
            for i in chosen.tolist()
        ],
    }


def page(shown: dict[str, Any], n_columns: int = N_COLUMNS) -> str:
    """The picture as HTML."""
    figures = []
    for drawing in shown["drawings"]:
        right = drawing["class"] == drawing["named"]
        truth = "right" if right else f"it is: {drawing['class']}"
        figures.append(
            f'<figure class="{"right" if right else "wrong"}">'
            f'<div class="drawing">{html.escape(drawing["character"])}</div>'
            f'<div class="named">{html.escape(drawing["named"])}</div>'
            f'<div class="sure">{100 * drawing["probability"]:.0f} %</div>'
            f'<div class="truth">{html.escape(truth)}</div></figure>'
        )
    return _PAGE.replace("COLUMNS", str(n_columns)).replace("FIGURES", "\n".join(figures))


def draw(text: str, path: Path) -> None:
    """Let Chromium draw a page, and keep the picture with few colours."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as place:
        shot = Path(place) / "shot.png"
        with sync_playwright() as started:
            browser = started.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            view = browser.new_page(
                viewport={"width": WIDTH, "height": 100}, device_scale_factor=SCALE
            )
            view.set_content(text)
            view.screenshot(path=shot, full_page=True)
            browser.close()
        small = Image.open(shot).convert("RGB").quantize(128, dither=Image.Dither.NONE)
        with atomic_path(path) as temporary:
            small.save(temporary, format="PNG", optimize=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, answer, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PICTURE, help="the picture (PNG)")
    out = parser.parse_args(argv).out
    if shutil.which("chromium") is None:
        print("There is no chromium (Debian: chromium, fonts-noto-color-emoji).", file=sys.stderr)
        return 1
    dataset = latem.load_emoji()
    shown = answers(dataset, latem.train(dataset, "text", verbose=True))
    draw(page(shown), out)
    write_text(out.with_suffix(".json"), json.dumps(shown, ensure_ascii=False, indent=1) + "\n")
    right = sum(drawing["class"] == drawing["named"] for drawing in shown["drawings"])
    print(
        f"{right} of {len(shown['drawings'])} drawings are named right; of all, the mean over "
        f"{shown['n_classes']} classes is {shown['accuracy']:.1%}: {out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
