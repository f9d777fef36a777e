"""Write the SHA-256 of every bundled data file into `src/latem/SHA256SUMS`.

    python tools/checksums.py

`cd src/latem && sha256sum --check SHA256SUMS` compares them, and so does a test.
"""

import hashlib
from pathlib import Path

import latem
from latem.core.atomic import atomic_path

PACKAGE = Path(latem.__file__).parent
SUMS = PACKAGE / "SHA256SUMS"


def checksums(package: Path = PACKAGE) -> str:
    """One line per file in the `data` folder of a room, as `sha256sum` writes it."""
    files = sorted(path for path in package.glob("*/data/*") if path.is_file())
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(package).as_posix()}\n"
        for path in files
    )


if __name__ == "__main__":
    with atomic_path(SUMS) as temporary:
        Path(temporary).write_text(checksums(), encoding="utf-8", newline="\n")
    print(SUMS.read_text(encoding="utf-8"), end="")
