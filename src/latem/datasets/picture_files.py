"""Finding pictures: in class folders, in lists, in any folder. None is opened here."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PureWindowsPath

from latem.datasets.folder import read_image_list, read_images

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".avif", ".heic", ".heif", ".jp2", ".ppm", ".pgm"),
)


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


def leads_out(image: str) -> bool:
    """Whether an image's name is no path inside a folder: absolute, or with "..".

    >>> leads_out("ant/1.jpg"), leads_out("../1.jpg"), leads_out("/ant/1.jpg")
    (False, True, True)
    """
    path = PureWindowsPath(image)  # knows both kinds of slashes, and drives
    return ".." in path.parts or bool(path.anchor)


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

    A .csv file is a list: its column `image` has paths, from the CSV's own folder.

    Returns
    -------
    pictures : list of Path
        Files need not exist: reading them says so.
    errors : list of PictureError
        Folders that hold no pictures or cannot be read, links that lead nowhere, and empty lines
        of lists.
    """
    found: list[Path] = []
    errors: list[PictureError] = []
    for source in map(Path, sources):
        if source.suffix.lower() == ".csv" and source.is_file():
            listed = read_image_list(source)
            found += [source.parent / image for image in listed if image]
            n_empty = sum(not image for image in listed)
            if n_empty or not listed:
                reason = f"{n_empty} lines name no file" if listed else "it lists no pictures"
                errors.append(PictureError(str(source), reason))
            continue
        if not source.is_dir():
            found.append(source)
            continue
        inside = list(_walk(source, ()))
        found += [path for path, reason in inside if not reason]
        errors += [PictureError(_printable(str(path)), reason) for path, reason in inside if reason]
        if not inside:
            errors.append(PictureError(str(source), "the folder holds no pictures"))
    return found, errors


def _in_class_folders(source: Path) -> tuple[list[Picture], list[Skipped]]:
    pictures: list[Picture] = []
    skipped: list[Skipped] = []
    for entry in sorted(_entries(source), key=lambda entry: entry.name):
        if not os.path.isdir(entry.path):
            if _named_like_picture(entry.name):
                skipped.append(
                    Skipped(_printable(entry.name), "", "it lies outside the class folders")
                )
            continue
        if not _is_unicode(entry.name):
            skipped.append(Skipped(_printable(entry.name), "", "the folder's name is not Unicode"))
            continue
        label = unicodedata.normalize("NFC", entry.name)
        n_before = len(pictures) + len(skipped)
        for path, reason in _walk(Path(entry.path), (source,)):
            image = path.relative_to(source).as_posix()
            if not reason and not _is_unicode(image):
                reason = "its name is not Unicode"
            if reason:
                skipped.append(Skipped(_printable(image), label, reason))
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


def _printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")


def _in_list(source: Path) -> tuple[list[Picture], list[Skipped]]:
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
