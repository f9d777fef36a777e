"""Thumbnails: small pictures that live inside the page.

Pillow is an optional extra, though matplotlib brings it along. Without it a gallery, which has no
plots, shows placeholders, and `missing_pillow` is what the page says about it.
"""

from __future__ import annotations

import base64
import io
from importlib.util import find_spec
from os import PathLike

SIDE = 128  # pixels of the longer side, at most
_QUALITY = 80


def missing_pillow() -> str:
    """Why there are no pictures, or nothing if Pillow is there."""
    if find_spec("PIL") is not None:
        return ""
    return "The pictures are left out: reading them needs Pillow (pip install 'latem[images]')."


def thumbnail(path: str | PathLike[str] | None) -> str | None:
    """A picture as a `data:` address, or None if it cannot be read.

    Parameters
    ----------
    path : path, or None

    Returns
    -------
    str or None
        An upright RGB picture of at most 128 × 128 pixels as JPEG, in base64.
    """
    content = None if path is None else small_picture(path, SIDE)
    if content is None:
        return None
    return "data:image/jpeg;base64," + base64.b64encode(content).decode("ascii")


def small_picture(path: str | PathLike[str], side: int) -> bytes | None:
    """A picture as a small JPEG file, or None if it cannot be read.

    Parameters
    ----------
    path : path
    side : int
        Pixels of the longer side, at most.
    """
    if missing_pillow():
        return None
    from latem.features.pictures import read_picture

    try:
        image = read_picture(path, at_least=2 * side)
    except ValueError:  # a PictureError, or a path no file can have
        return None
    image.thumbnail((side, side))
    content = io.BytesIO()
    image.save(content, "JPEG", quality=_QUALITY, optimize=True)
    return content.getvalue()
