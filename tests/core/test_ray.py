"""Searches on Ray, where it is installed: it is no part of the development environment."""

import joblib
import pytest

import latem
from latem.datasets import make_latent_world

ray = pytest.importorskip("ray")


@pytest.fixture
def two_workers():
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what a version of Ray warns of is its own affair
@pytest.mark.parametrize("kind", ["LatEmCV", "CommitteeCV"])
def test_same_bytes_as_here(kind, two_workers, tmp_path):
    world = make_latent_world(n_features=1200, random_state=0)  # features are mapped, not pickled
    files = []
    for backend in ("threading", "ray"):
        model = getattr(latem, kind)(world.embeddings["att"], cv=2, random_state=0)
        with joblib.parallel_config(backend):
            model.fit(*world.training())
        model.save(tmp_path / f"{backend}.safetensors")
        files.append((tmp_path / f"{backend}.safetensors").read_bytes())
    assert files[0] == files[1]
