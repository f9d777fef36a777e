"""From pictures to a dataset folder: classes, split, provenance.

Classes are checked before the first picture is decoded. Vectors come from `chunks.py`, by way of a
hidden folder beside the dataset-to-be; the dataset is made in there too, and renamed into place
when it is complete.
"""

from __future__ import annotations

import csv
import json
import logging
import shutil
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from latem.core.alone import work_folder
from latem.core.atomic import refuse_existing, writing
from latem.core.messages import first_few, hint_of
from latem.core.threads import resolve_threads
from latem.core.version import __version__
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.folder import read_folder
from latem.datasets.folder_writer import check_name, write_folder
from latem.datasets.picture_files import Picture, Skipped, find_pictures
from latem.datasets.splits import draw_val, hold_out
from latem.embeddings.table import ClassEmbeddings, as_class_embeddings
from latem.features.chunks import Chunks, pillow_version
from latem.features.encoder import Encoder
from latem.features.encoders import DEFAULT_ENCODER, load_encoder
from latem.features.pictures import quiet_pillow

_log = logging.getLogger(__name__)
BATCH_SIZE = 32
UNDESCRIBED = "no class table describes its class"  # why a picture is left out
VAL_SHARE = 1 / 3  # of the seen classes; about what the paper's datasets have


@dataclass(frozen=True)
class Embedded:
    """What `embed_pictures` did.

    Attributes
    ----------
    dataset : ZeroShotDataset
        Read from the new folder.
    skipped : list of Skipped
        What was left out, also written to `skipped.csv` in the folder.
    n_reused : int
        Pictures whose vectors an interrupted run had left.
    notes : list of str
        Sentences about classes and the split that deserve a look.
    """

    dataset: ZeroShotDataset
    skipped: list[Skipped]
    n_reused: int
    notes: list[str]


def embed_pictures(
    source: str | PathLike[str],
    out: str | PathLike[str],
    tables: Mapping[str, Any],
    *,
    encoder: Encoder | str | Mapping[str, Any] = DEFAULT_ENCODER,
    encoder_options: Mapping[str, Any] | None = None,
    unseen: Sequence[str] = (),
    val_share: float = VAL_SHARE,
    held_out: float = 0.0,
    seed: int = 0,
    skip_unknown: bool = False,
    name: str = "",
    batch_size: int = BATCH_SIZE,
    n_threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Embedded:
    """Make a dataset folder from pictures.

    Pictures that cannot be read are left out and listed. After an interruption the same call
    continues where it stopped, to the same bytes.

    Parameters
    ----------
    source : path
        A folder with one folder per class, or a CSV file with the columns image and class.
    out : path of the new dataset folder
    tables : mapping of str to class table
        Class descriptions by name, each a table, DataFrame or path. Classes in them that have
        no pictures are simply unseen.
    encoder : Encoder, name or spec
        See `load_encoder`.
    encoder_options : mapping, optional
        Options for `load_encoder`, such as weights.
    unseen : sequence of class names
        Classes whose pictures must not be learned from: the test classes of the split
        "standard". Without any, no split is written.
    val_share : float
        Share of the other classes, drawn at random, that the split sets apart for choosing
        hyper-parameters; at least one class stays to learn from.
    held_out : float
        Share of each seen class's pictures that the split keeps from training, so that
        `evaluate(..., generalized=True)` can measure seen classes too.
    seed : int
        Of these draws.
    skip_unknown : bool
        Leave out classes that a table does not describe, instead of refusing.
    name : str
        The dataset's name; by default that of the folder.
    batch_size : int
        Pictures per call of the encoder.
    n_threads : int, optional
        Threads that decode, and threads of an encoder given by name; by default every core. The
        packaged encoder's numbers do not depend on it.
    progress : callable, optional
        Called with the number of pictures done and of all pictures.

    Returns
    -------
    Embedded

    Raises
    ------
    ValueError
        If no picture can be read, or if a class has pictures but no description.
    """
    out = Path(out)
    work = out.parent / f".{out.name}.embedding"
    busy = f"Another run is making {out}; wait, or name another folder."
    if out.exists() and work.exists():  # of a run that was killed when all was done
        with work_folder(work, busy):
            pass
    refuse_existing(out)
    if batch_size < 1 or not 0 <= val_share < 1 or not 0 <= held_out < 1:
        raise ValueError(
            f"batch_size must be at least 1, val_share and held_out from 0 to below 1, but they "
            f"are {batch_size}, {val_share} and {held_out}."
        )
    described = {key: as_class_embeddings(table) for key, table in tables.items()}
    if not described:
        raise ValueError("A dataset needs a class table that describes its classes.")
    for key in described:
        check_name(key)
    pictures, skipped = find_pictures(source)
    pictures, notes = _with_classes(pictures, skipped, described, skip_unknown)
    unseen = _check_unseen(unseen, pictures, described, notes)
    if not isinstance(encoder, Encoder):
        threads = {} if n_threads is None else {"n_threads": n_threads}
        encoder = load_encoder(encoder, **threads, **(encoder_options or {}))

    with writing(out), work_folder(work, busy):
        refuse_existing(out)  # such a run may have just ended
        run = Chunks(pictures, encoder, work, batch_size, resolve_threads(n_threads))
        with quiet_pillow():
            features, failures = run.features(progress or (lambda done, total: None))
        kept = [picture for i, picture in enumerate(pictures) if i not in failures]
        skipped += [Skipped(pictures[i].image, pictures[i].label, failures[i]) for i in failures]
        _log.info("%d pictures embedded, %d left out", len(kept), len(skipped))
        for item in skipped:
            _log.debug("left out %s: %s", item.image, item.reason)
        if kept:
            dataset = ZeroShotDataset(
                features=features,
                labels=np.array([picture.label for picture in kept]),
                embeddings=described,
                splits=_split(kept, pictures, unseen, val_share, seed, notes),
                images=np.array([picture.image for picture in kept]),
                name=name or out.name,
                info=_provenance(Path(source), encoder, len(skipped)),
            )
            if held_out:
                splits = {
                    key: hold_out(dataset, split, held_out, seed)
                    for key, split in dataset.splits.items()
                }
                dataset = replace(dataset, splits=splits)
            _publish(dataset, skipped, work, out)
            del dataset
        del features  # some systems remove no file that is mapped
    if not kept:
        first = f"{pictures[0].image}: {failures[0]}"
        raise ValueError(f"{source}: none of {len(pictures)} pictures can be read. {first}.")
    return Embedded(read_folder(out), skipped, run.n_reused, notes)


def _with_classes(
    pictures: list[Picture],
    skipped: list[Skipped],
    tables: Mapping[str, ClassEmbeddings],
    skip_unknown: bool,
) -> tuple[list[Picture], list[str]]:
    """Pictures with their classes spelled as in the tables; those of unknown classes refused."""
    spellings: dict[str, str] = {}
    for table in tables.values():
        spellings |= {unicodedata.normalize("NFC", str(c)): str(c) for c in table.names.tolist()}
    known = [
        Picture(picture.path, picture.image, spellings.get(picture.label, picture.label))
        for picture in pictures
    ]
    labels = sorted({picture.label for picture in known})
    lacking = {}
    for key, table in tables.items():
        if missing := [label for label in labels if label not in table]:
            lacking[key] = missing
    if lacking and not skip_unknown:
        key, missing = next(iter(lacking.items()))
        hint = hint_of(missing, tables[key].names.tolist())
        raise ValueError(
            f"Class table {key!r} has no rows for {first_few(missing)}{hint}, which have "
            f"pictures. Add rows, rename the folders to match the table, or leave these classes "
            f"out (--skip-unknown, in Python skip_unknown=True)."
        )
    unknown = {label for missing in lacking.values() for label in missing}
    skipped += [Skipped(p.image, p.label, UNDESCRIBED) for p in known if p.label in unknown]
    known = [picture for picture in known if picture.label not in unknown]
    if not known:
        raise ValueError(
            f"No class with pictures is in the class tables: {first_few(sorted(unknown))}."
        )
    notes = []
    if unknown:
        notes.append(f"Left out, as no class table describes them: {first_few(sorted(unknown))}.")
    return known, notes


def _check_unseen(
    unseen: Sequence[str],
    pictures: list[Picture],
    tables: Mapping[str, ClassEmbeddings],
    notes: list[str],
) -> list[str]:
    """Unseen classes that have pictures, spelled as in the tables."""
    labels = {picture.label for picture in pictures}
    known = labels | {str(c) for table in tables.values() for c in table.names.tolist()}
    spellings = {unicodedata.normalize("NFC", c): c for c in known}
    named = [spellings.get(unicodedata.normalize("NFC", c), c) for c in dict.fromkeys(unseen)]
    odd = [c for c in named if c not in known]
    if odd:
        raise ValueError(
            f"Named as unseen, but neither among the pictures nor in a class table: "
            f"{first_few(odd)}{hint_of(odd, sorted(known))}. Correct the names or take them off "
            f"the list."
        )
    with_pictures = [c for c in named if c in labels]
    if with_pictures and len(with_pictures) == len(labels):
        raise ValueError("Every class with pictures is named as unseen; leave some to learn from.")
    if without := [c for c in named if c not in labels]:
        notes.append(f"Unseen classes without pictures to test on: {first_few(without)}.")
    return with_pictures


def _split(
    kept: list[Picture],
    pictures: list[Picture],
    unseen: list[str],
    val_share: float,
    seed: int,
    notes: list[str],
) -> dict[str, Split]:
    labels = {picture.label for picture in kept}
    lost = sorted({picture.label for picture in pictures} - labels)
    if lost:
        notes.append(f"Classes none of whose pictures can be read: {first_few(lost)}.")
    test = tuple(sorted(c for c in unseen if c in labels))
    seen = sorted(labels - set(test))
    if not test or not seen:
        notes.append(
            "No split is written, and no pictures are held out, as there are no unseen classes to "
            "test on: name some with --unseen, or draw some with latem data split."
        )
        return {}
    n_val = min(round(val_share * len(seen)), len(seen) - 1)
    return {"standard": Split(*draw_val(seen, n_val, seed), test)}


def _provenance(source: Path, encoder: Encoder, n_skipped: int) -> dict[str, Any]:
    versions = {"latem": __version__, **encoder.versions, "pillow": pillow_version()}
    return {
        "features": f"{encoder.name}, {encoder.n_features}-d, float32",
        "pictures": str(source.absolute()),
        "skipped": n_skipped,
        "made_with": ", ".join(f"{key} {value}" for key, value in versions.items()),
        "encoder": encoder.name,
        "encoder_spec": json.dumps(encoder.spec),
    }


def _publish(dataset: ZeroShotDataset, skipped: list[Skipped], work: Path, out: Path) -> None:
    """Make the folder inside the hidden one, complete; then rename it into place."""
    made = work / "dataset"
    if made.exists():  # of a run that was killed just here
        shutil.rmtree(made)
    write_folder(dataset, made)
    if skipped:
        with open(made / "skipped.csv", "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(("image", "class", "reason"))
            lines.writerows((item.image, item.label, item.reason) for item in skipped)
    made.rename(out)
