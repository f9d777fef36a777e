"""The readers of the library, by the names that `files.toml` gives them: functions of a path."""

from bad_input.workspace import CLASSES, fitted, table, training

import latem
from latem.core.run_folder import RunFolder
from latem.core.text_files import read_lines
from latem.datasets.archives import unpack_datasets
from latem.datasets.arrays import from_npz, from_pictures, from_table
from latem.datasets.matlab import from_gbu, from_release
from latem.datasets.picture_files import find_pictures
from latem.features import load_encoder, read_picture
from latem.inspection.families import family_of_columns
from latem.workflows.bulk_features import name_features
from latem.workflows.name_album import read_labels

TABLES = {"att": "traits.csv"}
NAMES = list(CLASSES[:2])


def by_matlab(path):
    """The pair of files of "The Good, the Bad and the Ugly", in one folder."""
    return from_gbu(path / "res101.mat", path / "att_splits.mat")


def by_archive(path):
    """Datasets of a zip file, which go beside it."""
    return unpack_datasets(path, path.parent)


def by_training(path):
    """A dataset folder that a model is trained on."""
    return latem.train(path, embedding="att", kind="ESZSL", verbose=False)


def by_run(path):
    """A folder that a run is to write to."""
    with RunFolder(path):
        pass


READERS = {
    "model": latem.load,
    "description of a model": latem.read_info,
    "checkpoint": training,
    "dataset folder": latem.read_folder,
    "training": by_training,
    "class table": latem.ClassEmbeddings.read,
    "table of traits": latem.ClassEmbeddings.from_traits,
    "candidates": lambda path: fitted().predict(latem.read_folder("zoo").features, str(path)),
    "attributes": latem.read_attributes,
    "word vectors": lambda path: latem.word_embeddings(NAMES, path),
    "synonyms": lambda path: latem.word_embeddings(NAMES, "words.txt", synonyms=path),
    "senses": lambda path: latem.hierarchy_embeddings(NAMES, senses=path),
    "descriptions": latem.text_embeddings,
    "corpus": lambda path: latem.train_word_vectors(path, min_count=1),
    "list of names": lambda path: read_lines(path, "class names"),
    "table of images": lambda path: from_table(path, TABLES),
    "arrays": lambda path: from_npz(path, TABLES),
    "features": lambda path: from_pictures("photos", path, TABLES),
    "rows of features": lambda path: name_features(fitted(), path),
    "MATLAB pair": by_matlab,
    "MATLAB release": from_release,
    "archive": by_archive,
    "picture": read_picture,
    "pictures in folders": find_pictures,
    "labels by hand": lambda path: read_labels(path, []),
    "families of traits": lambda path: family_of_columns(table(), path),
    "encoder": load_encoder,
    "run folder": by_run,
}
