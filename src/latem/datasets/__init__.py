"""Datasets: images of some classes, descriptions of more."""

from latem.datasets.dataset import Split, ZeroShotDataset
from latem.datasets.emoji import load_emoji
from latem.datasets.folder import read_folder
from latem.datasets.synthetic import make_latent_world

__all__ = ["Split", "ZeroShotDataset", "load_emoji", "make_latent_world", "read_folder"]
