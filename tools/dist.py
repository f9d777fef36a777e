"""Build wheel and sdist of what is committed, and run the tests with them as installed.

    python tools/dist.py [--python PYTHON] [--extras NAMES] [--to FOLDER] [PYTEST OPTION ...]

The sdist is built from a fresh clone and must hold every file that git does; the wheel is built
from the sdist and must hold every file of the package. Each is installed in a new environment with
nothing but what it asks for, in the versions of `requirements/dev.txt`. Both must have installed
the same bytes; the tests of the sdist are then run with them. Where tests look for the sources,
they find a copy of what was installed.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
HOOK = "import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
WHERE = "import latem, pathlib; print(pathlib.Path(latem.__file__).parent)"


class Failure(Exception):
    """Something is wrong with what was built."""


def run(*command: Any, **options: Any) -> str:
    """Output of a command, which must succeed."""
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, encoding="utf-8", **options
    )
    if done.returncode:
        raise Failure(f"failed with {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def clone(place: Path) -> None:
    """Fresh clone of what is committed; the checkout may be another user's."""
    run("git", "-c", "safe.directory=*", "clone", "--quiet", REPOSITORY, place)


def tracked(folder: Path) -> list[str]:
    """Files that git knows."""
    return run("git", "ls-files", cwd=folder).splitlines()


def build(kind: str, source: Path, out: Path) -> Path:
    """`sdist` or `wheel` of a source folder, by the setuptools of this Python."""
    out.mkdir(parents=True)
    run(sys.executable, "-c", HOOK.format(kind=kind), out, cwd=source, stderr=subprocess.STDOUT)
    (made,) = out.iterdir()
    return made


def unpack(sdist: Path, place: Path) -> Path:
    """Folder of an sdist's files."""
    with tarfile.open(sdist) as archive:
        # versions of Python that have no filters are older than their being missed
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(place, **safely)
    (folder,) = place.iterdir()
    return folder


def check_complete(files: Sequence[str], sdist: Path, wheel: Path) -> None:
    """Fail if the sdist lacks a file of the repository or the wheel one of the package."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        packed = {f"src/{name}" for name in archive.namelist()}
    package = [name for name in files if name.startswith("src/")]
    for what, wanted, there in ((sdist, files, held), (wheel, package, packed)):
        if missing := sorted(set(wanted) - there):
            raise Failure(
                f"{what.name} lacks {len(missing)} of {len(wanted)} files, {missing[0]} for one; "
                f"see MANIFEST.in and package-data in pyproject.toml"
            )


def installed(archive: Path, place: Path, options: argparse.Namespace) -> Path:
    """Python of a new environment with an archive, its extras and what runs tests."""
    uv = (sys.executable, "-m", "uv")
    run(*uv, "venv", "--quiet", "--python", options.python, place)
    python = place / "bin" / "python"
    pip = (*uv, "pip", "install", "--quiet", "--python", python)
    run(*pip, "--constraint", REPOSITORY / "requirements" / "dev.txt",
        "--group", f"{REPOSITORY / 'pyproject.toml'}:test",
        f"latem[{options.extras}] @ {archive.resolve().as_uri()}", cwd=place)  # fmt: skip
    run(*pip, "--no-deps", "-r", REPOSITORY / "requirements" / "text.txt", cwd=place)
    return python


def package_of(python: Path) -> Path:
    """Where an environment has the package."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    package = Path(run(python, "-c", WHERE, cwd=python.parent, env=own).strip())
    if python.parents[1].resolve() not in package.resolve().parents:
        raise Failure(f"{python} takes latem from {package}, not from its environment")
    return package


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file that was installed, not of what Python and numba made of it since."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test(python: Path, sdist: Path, place: Path, options: Sequence[str]) -> None:
    """Run the tests of an sdist and the package's examples with what is installed."""
    folder = unpack(sdist, place)
    package = package_of(python)
    shutil.rmtree(folder / "src")
    shutil.copytree(package, folder / "src" / "latem")
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, "-m", "pytest", "-n", "2", "-m", "not slow", "-rs", *options]
    done = subprocess.run(
        list(map(str, [*command, "--pyargs", "tests", "latem"])), cwd=folder, env=own
    )
    if done.returncode:
        raise Failure(f"tests failed with {package}")


def main(argv: Sequence[str] | None = None) -> int:
    """Build, check, install, test; the archives are left only if all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="Python of the environments")
    parser.add_argument("--extras", default="", help="extras to install, with commas")
    parser.add_argument("--to", type=Path, default=REPOSITORY / "dist", help="for the archives")
    options, rest = parser.parse_known_args(argv)
    try:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            clone(place / "clone")
            if run("git", "status", "--porcelain", cwd=REPOSITORY):
                print("There are changes that are not committed: they are not in it.")
            sdist = build("sdist", place / "clone", place / "sdist")
            wheel = build("wheel", unpack(sdist, place / "unpacked"), place / "wheel")
            check_complete(tracked(place / "clone"), sdist, wheel)
            pythons = [
                installed(archive, place / f"with-{archive.parent.name}", options)
                for archive in (sdist, wheel)
            ]
            of_sdist, of_wheel = (digests(package_of(python)) for python in pythons)
            if of_sdist != of_wheel:
                raise Failure(f"{sdist.name} and {wheel.name} install different files")
            test(pythons[1], sdist, place / "tested", rest)
            shutil.rmtree(options.to, ignore_errors=True)
            options.to.mkdir(parents=True)
            for archive in (sdist, wheel):
                shutil.copy(archive, options.to)
                digest = hashlib.sha256(archive.read_bytes()).hexdigest()
                print(f"{digest}  {options.to / archive.name}")
    except Failure as failure:
        print(f"dist: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
