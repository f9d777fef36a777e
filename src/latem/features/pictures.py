"""Pictures: finding them, and reading them safely.

A folder of pictures holds what people put there: photos lying on their side with a note in EXIF,
scans in CMYK, logos with a transparent ground, animations, files that are cut short, text with a
picture's name. Whatever can be read becomes an upright RGB picture; what cannot is an error with a
reason, never a crash. Only formats that are decoded by a library are opened: PostScript, which
would be run by another program, is not.
"""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

INSTALL = "pip install 'latem[images]'"
SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".avif", ".heic", ".heif", ".jp2", ".ppm", ".pgm"),
)
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "BMP", "TIFF", "WEBP", "AVIF", "HEIF", "JPEG2000", "PPM")
_ORIENTATION = 0x0112  # EXIF tag
MAX_PIXELS = 178_956_970  # 512 MB of RGB; Pillow's own limit


class PictureError(ValueError):
    """A file cannot be read as a picture; `reason` says why, without the file's name."""

    def __init__(self, place: str, reason: str):
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


@dataclass(frozen=True)
class Picture:
    """A picture to be embedded.

    Attributes
    ----------
    path : Path
    image : str
        Its name in the dataset: the path from the folder of pictures, with slashes.
    label : str
        Its class.
    """

    path: Path
    image: str
    label: str


@dataclass(frozen=True)
class Skipped:
    """Something left out, and why; `label` is empty where the class is unknown."""

    image: str
    label: str
    reason: str


def find_pictures(
    source: str | PathLike[str],
) -> tuple[list[Picture], list[Skipped]]:
    """Pictures in class folders or in a list, and what had to be left out.

    Parameters
    ----------
    source : path
        A folder with one folder per class, whose name is the class; pictures may lie in
        folders of their own inside it, and links are followed. Or a CSV file with the columns
        `image` (path, from the CSV's own folder) and `class`.

    Returns
    -------
    pictures : list of Picture
        Sorted by class, then by name; those of a CSV in its order.
    skipped : list of Skipped
        Pictures outside class folders, broken links, folders without pictures, folders that may
        not be read, names that are not Unicode. Hidden files and files of other kinds are not
        mentioned.
    """
    source = Path(source)
    if source.is_dir():
        return _in_class_folders(source)
    if source.is_file() and source.suffix.lower() == ".csv":
        return _in_list(source)
    if source.is_file():
        raise ValueError(f"{source} is neither a folder of class folders nor a .csv file.")
    raise FileNotFoundError(f"There is no folder of pictures {str(source)!r}.")


def pictures_in(sources: Iterable[str | PathLike[str]]) -> tuple[list[Path], list[PictureError]]:
    """Pictures that are meant by some paths: files as they are, folders by what is in them.

    Returns
    -------
    pictures : list of Path
        Files need not exist: reading them says so.
    errors : list of PictureError
        Folders that hold no pictures or cannot be read, and links that lead nowhere.
    """
    found: list[Path] = []
    errors: list[PictureError] = []
    for source in map(Path, sources):
        if not source.is_dir():
            found.append(source)
            continue
        inside = list(_walk(source, ()))
        found += [path for path, reason in inside if not reason]
        errors += [PictureError(_shown(str(path)), reason) for path, reason in inside if reason]
        if not inside:
            errors.append(PictureError(str(source), "the folder holds no pictures"))
    return found, errors


def _in_class_folders(source: Path) -> tuple[list[Picture], list[Skipped]]:
    pictures: list[Picture] = []
    skipped: list[Skipped] = []
    for entry in sorted(_entries(source), key=lambda entry: entry.name):
        if not os.path.isdir(entry.path):
            if _named_like_picture(entry.name):
                skipped.append(Skipped(_shown(entry.name), "", "it lies outside the class folders"))
            continue
        if not _is_unicode(entry.name):
            skipped.append(Skipped(_shown(entry.name), "", "the folder's name is not Unicode"))
            continue
        label = unicodedata.normalize("NFC", entry.name)
        n_before = len(pictures) + len(skipped)
        for path, reason in _walk(Path(entry.path), (source,)):
            image = path.relative_to(source).as_posix()
            if not reason and not _is_unicode(image):
                reason = "its name is not Unicode"
            if reason:
                skipped.append(Skipped(_shown(image), label, reason))
            else:
                pictures.append(Picture(path, image, label))
        if len(pictures) + len(skipped) == n_before:
            skipped.append(Skipped(label, label, "the folder holds no pictures"))
    if not pictures:
        lying = any(item.reason.startswith("it lies outside") for item in skipped)
        hint = "; the pictures in it must be put into folders, one per class" if lying else ""
        raise ValueError(f"{source} holds no class folders with pictures{hint}.")
    return pictures, skipped


def _walk(folder: Path, above: tuple[Path, ...]) -> Iterator[tuple[Path, str]]:
    """Pictures under a folder with the reason to leave each out, if any; sorted."""
    try:
        if any(os.path.samefile(folder, other) for other in above):
            return  # a link to a folder it lies in
        entries = sorted(_entries(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield folder, f"the folder cannot be read: {error.strerror}"
        return
    for entry in entries:
        path = Path(entry.path)
        if os.path.isdir(path):
            yield from _walk(path, (*above, folder))
        elif _named_like_picture(entry.name):
            yield path, "" if os.path.exists(path) else "the link leads nowhere"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return [entry for entry in entries if not entry.name.startswith(".")]


def _named_like_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")


def _in_list(source: Path) -> tuple[list[Picture], list[Skipped]]:
    from latem.datasets.folder import read_images

    images, labels = read_images(source)
    pictures, skipped = [], []
    for image, label in zip(images.tolist(), labels.tolist(), strict=True):
        if image:
            path = source.parent / image
            pictures.append(Picture(path, image, unicodedata.normalize("NFC", label)))
        else:
            skipped.append(Skipped(image, label, "the line names no file"))
    if not pictures:
        raise ValueError(f"{source} names no pictures; write one per line under image,class.")
    return pictures, skipped


def read_picture(
    source: str | PathLike[str] | IO[bytes], *, at_least: int | None = None
) -> Image.Image:
    """A picture, upright and in RGB.

    EXIF's rotation is applied; transparent parts become white; of an animation the first frame
    is taken; 16-bit grey is scaled to 8 bits. A picture of more than 178,956,970 pixels is
    refused before it is decoded.

    Parameters
    ----------
    source : path, or binary file
    at_least : int, optional
        A JPEG may be decoded at a half, a quarter or an eighth of its size if both its sides
        keep at least this many pixels: quicker, and good enough when the picture will be made
        much smaller anyway.

    Returns
    -------
    PIL.Image.Image

    Raises
    ------
    PictureError
        If it cannot be read; every reason ends up here.
    """
    if not isinstance(source, str | PathLike):
        return _decode(source, str(getattr(source, "name", "picture")), at_least)
    place = os.fspath(source)
    try:
        if not stat.S_ISREG(os.stat(source).st_mode):
            raise PictureError(place, "it is not a file")
        with open(source, "rb") as file:
            return _decode(file, place, at_least)
    except FileNotFoundError:
        raise PictureError(place, "there is no such file") from None
    except OSError as error:
        raise PictureError(place, f"it cannot be opened: {error.strerror or error}") from None


def _decode(file: IO[bytes], place: str, at_least: int | None) -> Image.Image:
    from_pillow = pillow()
    import PIL

    try:
        with from_pillow.open(file, formats=_formats(from_pillow)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise from_pillow.DecompressionBombError(f"{image.width} × {image.height} pixels")
            if at_least is not None:
                image.draft("RGB", (at_least, at_least))
            image.load()
            return to_rgb(image)
    except PIL.UnidentifiedImageError:
        reason = "it is not a picture of a known format"
    except (from_pillow.DecompressionBombError, from_pillow.DecompressionBombWarning) as error:
        reason = f"it has too many pixels (a decompression bomb?): {error}"
    except Exception as error:  # decoders raise many kinds for damaged files
        reason = f"it is damaged: {error or type(error).__name__}"
    raise PictureError(place, reason)


@contextlib.contextmanager
def quiet_pillow() -> Iterator[None]:
    """Without Pillow's warnings: what matters is told as an error.

    Not for the threads that decode, but around them: filters belong to the process.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pillow().DecompressionBombWarning)
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def pillow() -> Any:
    """Pillow's module `Image`."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(f"Reading pictures needs Pillow: {INSTALL}.") from None
    return Image


def _formats(from_pillow: Any) -> list[str]:
    from_pillow.init()
    return [name for name in FORMATS if name in from_pillow.OPEN]


def to_rgb(image: Image.Image) -> Image.Image:
    """An opened picture, upright and in RGB, transparent parts white."""
    from PIL import Image, ImageOps

    with contextlib.suppress(Exception):  # damaged EXIF says nothing about the picture itself
        if image.getexif().get(_ORIENTATION, 1) != 1:  # else the picture would only be copied
            image = ImageOps.exif_transpose(image)
    if image.mode.startswith(("I", "F")):
        image = Image.fromarray(_to_bytes(image.mode, np.asarray(image)))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _to_bytes(mode: str, grey: np.ndarray) -> np.ndarray:
    """Grey of more than 8 bits as bytes.

    The range of 16-bit grey is 0 to 65535. That of 32-bit and floating-point grey is not told:
    it is taken to be 0 to 1, to 255 or to 65535, whichever first holds the largest value.
    """
    values = np.nan_to_num(grey.astype(np.float64))
    top = 65535.0
    if not mode.startswith("I;16"):
        ranges = (1.0, 255.0, 65535.0) if mode == "F" else (255.0, 65535.0)
        largest = float(values.max(initial=0))
        top = next((limit for limit in ranges if largest <= limit), largest)
    return np.rint(np.clip(values / top, 0, 1) * 255).astype(np.uint8)
