"""Bounds that are asked before anything is allocated."""

import numpy as np
import pytest

from latem import LatEm, make_latent_world
from latem.core import memory


def test_what_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "LARGEST_UNPACKED", 1000)
    path = tmp_path / "file"
    path.write_bytes(bytes(200))
    memory.check_unpacked(path, 1000, "unpack it by hand")
    memory.check_unpacked(path, 2000, "unpack it by hand")
    with pytest.raises(ValueError, match=r"file has 200 bytes but would unpack to 2 kB.*by hand"):
        memory.check_unpacked(path, 2001, "unpack it by hand")


def test_a_full_disk_is_foreseen(tmp_path):
    memory.check_disk(tmp_path, 1, "It")
    with pytest.raises(OSError, match="It needs .*TB on the disk of .* make room"):
        memory.check_disk(tmp_path, 10**18, "It")


def test_more_maps_than_memory_are_refused_at_once(monkeypatch):
    world = make_latent_world(n_images=4, random_state=0)
    model = LatEm(world.embeddings["att"], n_maps=10**10, random_state=0)
    with pytest.raises(ValueError, match=r"LatEm with n_maps=10000000000 would take .* TB of mem"):
        model.fit(*world.training())
    monkeypatch.setattr(memory, "physical_memory", lambda: 25 * 10**9)
    with pytest.raises(ValueError, match=r"would take 71\.7 GB of memory; this machine has 25 GB"):
        model.set_params(n_maps=10**7).fit(*world.training())


def test_texts(monkeypatch):
    assert memory.text_array(["a", "bee"], "names").tolist() == ["a", "bee"]
    assert memory.text_array([], "names").dtype.kind == "U"
    monkeypatch.setattr(memory, "LARGEST_TEXTS", 100)
    with pytest.raises(ValueError, match=r"One of 2 names has 13 characters \('xxxxxx"):
        memory.text_array(["a", "x" * 13], "names")
    assert memory.text_array(["x" * 12, "x"], "names").dtype == np.dtype("<U12")
