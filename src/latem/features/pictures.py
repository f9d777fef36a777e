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

from latem.datasets.picture_files import PictureError

if TYPE_CHECKING:
    from PIL import Image

INSTALL = "pip install 'latem[images]'"
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "BMP", "TIFF", "WEBP", "AVIF", "HEIF", "JPEG2000", "PPM")
_ORIENTATION = 0x0112  # EXIF tag
MAX_PIXELS = 178_956_970  # 512 MB of RGB; Pillow's own limit


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
