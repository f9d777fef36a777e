"""Reading pictures safely.

A folder of pictures holds what people put there: photos lying on their side with a note in EXIF,
scans in CMYK, logos with a transparent ground, animations, files that are cut short, text with a
picture's name. Whatever can be read becomes an upright RGB picture; what cannot is an error with a
reason, never a crash. Only formats that are decoded by a library are opened: PostScript, which
would be run by another program, is not.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import warnings
from collections.abc import Iterator
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from latem.core.memory import LARGEST_UNPACKED, in_bytes
from latem.datasets.picture_files import PictureError

if TYPE_CHECKING:
    from PIL import Image

INSTALL = "pip install 'latem[images]'"
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "BMP", "TIFF", "WEBP", "AVIF", "HEIF", "JPEG2000", "PPM")
_ORIENTATION = 0x0112  # EXIF tag
_TURNS = {
    **{2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE"},
    **{6: "ROTATE_270", 7: "TRANSVERSE", 8: "ROTATE_90"},
}
MAX_PIXELS = 178_956_970  # Pillow's own limit
MAX_BYTES = 10**9  # of memory that reading a picture may take, as far as can be told before
MAX_RATIO = 10_000  # bytes of memory for a byte of the file: a scanned page needs some thousands
HUGE = 50_000_000  # pixels above which a picture may be reduced
STRIP = 1 << 20  # pixels that are converted at once
_WIDTHS = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}  # bytes; else 4
_DECODERS = {"WEBP": 8, "AVIF": 8, "HEIF": 8, "JPEG2000": 16, "TIFF": 4}  # bytes a pixel besides
_PROGRESSIVE = 6  # bytes a pixel of a progressive JPEG, before it is made smaller
_NARROW = 64  # pixels; in narrower rows, what a row costs by itself counts, too
_ROW = 32  # bytes: where it lies, in the picture and in the strips that are converted


def read_picture(
    source: str | PathLike[str] | IO[bytes], *, at_least: int | None = None
) -> Image.Image:
    """A picture, upright and in RGB.

    EXIF's rotation is applied; transparent parts become white; of an animation the first frame
    is taken; 16-bit grey is scaled to 8 bits. A picture of more than 178,956,970 pixels, or one
    that would take more than 1 GB of memory, or more than 64 MB and 10,000 times its file, is
    refused before it is decoded.

    Parameters
    ----------
    source : path, or binary file
    at_least : int, optional
        A JPEG may be decoded at a half, a quarter or an eighth of its size if both its sides
        keep at least this many pixels: quicker, and good enough when the picture will be made
        much smaller anyway. Any picture of more than 50 million pixels may be reduced by a whole
        factor: less memory.

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
        n_packed = _size(file)
        with from_pillow.open(file, formats=_formats(from_pillow)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise from_pillow.DecompressionBombError(f"{image.width} × {image.height} pixels")
            n_whole = image.width * image.height
            if at_least is not None:
                image.draft("RGB", (at_least, at_least))
            limit = min(MAX_BYTES, max(LARGEST_UNPACKED, MAX_RATIO * n_packed))
            n_bytes = _cost(image, n_whole, at_least)
            if n_bytes <= limit:
                image.load()  # before EXIF is looked at: of a PNG that would decode it, too
                n_bytes += _cost_of_turning(image, at_least)
            if n_bytes > limit:
                raise from_pillow.DecompressionBombError(f"they take {in_bytes(n_bytes)} of memory")
            return to_rgb(image, at_least)
    except PIL.UnidentifiedImageError:
        reason = "it is not a picture of a known format"
        if os.path.splitext(place)[1].lower() in (".heic", ".heif"):
            reason += "; HEIC must be converted, to JPEG for instance"
    except (from_pillow.DecompressionBombError, from_pillow.DecompressionBombWarning) as error:
        reason = f"it has too many pixels (a decompression bomb?): {error}"
    except Exception as error:  # decoders raise many kinds for damaged files
        reason = f"it is damaged: {error or type(error).__name__}"
    raise PictureError(place, reason)


def _size(file: IO[bytes]) -> int:
    """Bytes of an open file from where it stands."""
    place = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(place)
    return end - place


def _cost(image: Image.Image, n_whole: int, at_least: int | None) -> int:
    """Bytes of memory that decoding and converting a picture will take.

    Parameters
    ----------
    image : opened, not yet decoded
    n_whole : int
        Pixels in the file, of which a JPEG may be decoded to fewer.
    at_least : int or None
    """
    n_pixels = image.width * image.height
    factor = _factor(image.size, at_least)
    n_bytes = n_pixels * (_WIDTHS.get(image.mode, 4) + _DECODERS.get(image.format or "", 0))
    if image.width < _NARROW:
        n_bytes += _ROW * image.height
    if image.info.get("progressive"):
        n_bytes += _PROGRESSIVE * n_whole
    if image.mode != "RGB" or image.has_transparency_data or factor > 1:
        n_bytes += _cost_of_result(image, at_least)
    return n_bytes


def _cost_of_turning(image: Image.Image, at_least: int | None) -> int:
    """Bytes that it takes to turn a decoded picture, if it has to be turned."""
    return 0 if _turned(image) is None else _cost_of_result(image, at_least)


def _cost_of_result(image: Image.Image, at_least: int | None) -> int:
    """Bytes of the picture that is made in the end."""
    factor = _factor(image.size, at_least)
    rows = _ROW * image.height // factor if image.width // factor < _NARROW else 0
    return 4 * image.width * image.height // factor**2 + rows


def too_large(content: bytes, pixels: int) -> str:
    """Why a picture file has too many pixels to be decoded, or nothing if it has not.

    Parameters
    ----------
    content : bytes
        Of the file; only its head is read.
    pixels : int
        How many are allowed.
    """
    from_pillow = pillow()
    try:
        with from_pillow.open(io.BytesIO(content), formats=_formats(from_pillow)) as image:
            width, height = image.size
    except from_pillow.DecompressionBombError as error:
        return f"it has too many pixels: {error}"
    except Exception:  # whoever decodes it will say what is wrong with it
        return ""
    if width * height <= pixels:
        return ""
    return f"it has too many pixels: {width} × {height}, and {pixels} are allowed"


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


def to_rgb(image: Image.Image, at_least: int | None = None) -> Image.Image:
    """An opened picture, upright and in RGB, transparent parts white.

    Parameters
    ----------
    image : PIL.Image.Image
    at_least : int, optional
        A huge picture may be reduced by a whole factor as long as both its sides keep at least
        this many pixels.
    """
    factor = _factor(image.size, at_least)
    turned = _turned(image)
    if image.mode != "RGB" or image.has_transparency_data or factor > 1:
        image = _by_strips(image, factor)
    return image if turned is None else image.transpose(turned)


def _turned(image: Image.Image) -> Any:
    """How a picture has to be turned to be upright, if EXIF says so."""
    from PIL.Image import Transpose

    with contextlib.suppress(Exception):  # damaged EXIF says nothing about the picture itself
        return Transpose[_TURNS[image.getexif()[_ORIENTATION]]]
    return None


def _factor(size: tuple[int, int], at_least: int | None) -> int:
    """By which whole number a huge picture is reduced."""
    if at_least is None or size[0] * size[1] <= HUGE:
        return 1
    return max(min(size) // max(at_least, 1), 1)


def _by_strips(image: Image.Image, factor: int) -> Image.Image:
    """A picture in RGB, reduced; strip by strip, so that only the result takes memory."""
    from PIL import Image

    width, height = image.size
    top = _top(image)
    made = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    for first, last in _strips(image.size, factor):
        strip = _strip_to_rgb(image.crop((0, first, width, last)), top)
        made.paste(strip if factor == 1 else strip.reduce(factor), (0, first // factor))
    return made


def _strips(size: tuple[int, int], factor: int = 1) -> Iterator[tuple[int, int]]:
    """First and last row of strips of about `STRIP` pixels, whole multiples of the factor."""
    width, height = size
    rows = max(STRIP // max(width, 1) // factor, 1) * factor
    for first in range(0, height, rows):
        yield first, min(first + rows, height)


def _strip_to_rgb(strip: Image.Image, top: float) -> Image.Image:
    from PIL import Image

    if strip.mode.startswith(("I", "F")):
        strip = Image.fromarray(_to_bytes(np.asarray(strip), top))
    if strip.has_transparency_data:
        strip = strip.convert("RGBA")
        white = Image.new("RGBA", strip.size, (255, 255, 255, 255))
        strip = Image.alpha_composite(white, strip)
    return strip if strip.mode == "RGB" else strip.convert("RGB")


def _top(image: Image.Image) -> float:
    """What white is in grey of more than 8 bits.

    The range of 16-bit grey is 0 to 65535. That of 32-bit and floating-point grey is not told:
    it is taken to be 0 to 1, to 255 or to 65535, whichever first holds the largest value.
    """
    if image.mode not in ("I", "F"):
        return 65535.0
    largest = 0.0
    for first, last in _strips(image.size):
        strip = np.asarray(image.crop((0, first, image.width, last)))
        values = np.nan_to_num(strip.astype(np.float64), copy=False)
        largest = max(largest, float(values.max(initial=0)))
    ranges = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
    return next((limit for limit in ranges if largest <= limit), largest)


def _to_bytes(grey: np.ndarray, top: float) -> np.ndarray:
    """Grey of more than 8 bits as bytes."""
    values = np.nan_to_num(grey.astype(np.float64), copy=False)
    values /= top
    np.clip(values, 0, 1, out=values)
    values *= 255
    return np.rint(values, out=values).astype(np.uint8)
