"""Datasets: images of some classes, descriptions of more."""

from latem.datasets.check import FolderReport, check_folder, describe, inspect_folder
from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.emoji import load_emoji
from latem.datasets.folder import read_folder
from latem.datasets.folder_writer import write_folder, write_split
from latem.datasets.splits import hold_out, random_class_splits, redraw_seen
from latem.datasets.synthetic import make_latent_world

__all__ = [
    "FolderReport",
    "Split",
    "ZeroShotDataset",
    "check_folder",
    "describe",
    "hold_out",
    "inspect_folder",
    "load_emoji",
    "make_latent_world",
    "random_class_splits",
    "read_folder",
    "redraw_seen",
    "write_folder",
    "write_split",
]
