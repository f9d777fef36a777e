"""What is served: model files and a dataset folder, in any order; the emoji for the demo."""

import pytest

from latem import ESZSL, load, make_latent_world, write_folder
from latem.workflows.serving import demo_to_serve, to_serve


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    world = make_latent_world(n_images=4, random_state=0)
    write_folder(world, folder / "world")
    ESZSL(world.embeddings["att"]).fit(*world.training()).save(folder / "birds.safetensors")
    return folder


def test_models_and_a_dataset_in_any_order(place):
    model, folder = place / "birds.safetensors", place / "world"
    for paths in ([model, folder], [folder, model]):
        served = to_serve(paths)
        assert served.models == {"birds": model}
        assert len(served.dataset.labels) > 0
        assert served.pictures == folder / "images"
    assert to_serve([model]).dataset is None


def test_what_cannot_be_served(place):
    model, folder = place / "birds.safetensors", place / "world"
    other = place / "other" / "birds.safetensors"
    other.parent.mkdir()
    other.write_bytes(model.read_bytes())
    with pytest.raises(ValueError, match="Give a model file"):
        to_serve([folder])
    with pytest.raises(ValueError, match="one dataset folder, not 2"):
        to_serve([model, folder, place])
    with pytest.raises(ValueError, match="would both be called 'birds'"):
        to_serve([model, other])
    with pytest.raises(FileNotFoundError, match="no model file or dataset folder .*gone"):
        to_serve([model, place / "gone"])
    with pytest.raises(ValueError, match="--pictures are those of a dataset"):
        to_serve([model], place)
    with pytest.raises(FileNotFoundError, match="no folder .* with pictures"):
        to_serve([model, folder], place / "nowhere")


@pytest.mark.slow
def test_the_demo_is_trained_once(tmp_path):
    served = demo_to_serve(tmp_path)
    assert list(served.models) == ["emoji by keywords", "emoji by sentences"]
    times = [path.stat().st_mtime_ns for path in served.models.values()]
    model = load(served.models["emoji by keywords"])
    assert model.encoder_["name"] == "efficientnet-lite0"
    assert served.dataset.split().held_out
    (tmp_path / "explorer_text_0.safetensors").write_bytes(b"cut short")
    again = demo_to_serve(tmp_path)
    after = [path.stat().st_mtime_ns for path in again.models.values()]
    assert after[0] == times[0]
    assert after[1] > times[1]
