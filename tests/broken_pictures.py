"""Pictures drawn by the tests: two halves, and files that are no picture."""

import io
import struct
import zlib

from PIL import Image

RED, BLUE = (250, 10, 10), (10, 10, 250)
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def halves(mode="RGB", size=(64, 32)):
    """Left half red, right half blue."""
    picture = Image.new("RGB", size, RED)
    picture.paste(BLUE, (size[0] // 2, 0, *size))
    return picture.convert(mode)


def png_chunk(kind, data):
    """A part of a PNG file, with the sum that belongs to it."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width=50_000, height=50_000):
    """A PNG whose header promises more pixels than anybody can hold."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1000)
    parts = png_chunk(b"IHDR", header), png_chunk(b"IDAT", data), png_chunk(b"IEND", b"")
    return PNG_SIGNATURE + b"".join(parts)


def jpeg():
    data = io.BytesIO()
    halves(size=(640, 480)).save(data, "jpeg")
    return data.getvalue()


BROKEN = {
    "cut.jpg": (jpeg()[:4000], "damaged: .*truncated"),
    "head.jpg": (jpeg()[:40], "known format|damaged"),
    "zeros.jpg": (bytes(5000), "not a picture of a known format"),
    "empty.jpg": (b"", "not a picture of a known format"),
    "text.jpg": (b"these are not the pixels you are looking for\n", "not a picture"),
    "program.jpg": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
    "bomb.png": (bomb(), "too many pixels .*2500000000"),
    "cut.png": (bomb(300, 300), "damaged"),
}
