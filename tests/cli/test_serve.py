"""`latem serve`: what it refuses to begin with."""

import socket
import sys

import pytest
from typer.testing import CliRunner

from latem import ESZSL, make_latent_world
from latem.cli import app

pytest.importorskip("fastapi")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "birds.safetensors"
    world = make_latent_world(n_images=4, random_state=0)
    ESZSL(world.embeddings["att"]).fit(*world.training()).save(path)
    return path


def refused(*arguments, **more):
    result = CliRunner().invoke(app, ["serve", *map(str, arguments)], **more)
    assert result.exit_code == 1, result.output
    return " ".join(result.output.split())


def test_other_addresses_need_a_token(model, tmp_path, monkeypatch):
    monkeypatch.delenv("LATEM_TOKEN", raising=False)
    assert "it needs a token" in refused(model, "--host", "0.0.0.0")
    monkeypatch.setenv("LATEM_TOKEN", "short")
    said = refused(model, "--host", "0.0.0.0")
    assert "too short" in said
    assert "short'" not in said
    empty = tmp_path / "token"
    empty.write_text("\n")
    assert "holds no token" in refused(model, "--token-file", empty)
    assert "token.txt" in refused(model, "--token-file", tmp_path / "token.txt")
    empty.write_bytes(b"\xff\xfe" * 20)
    assert "is not UTF-8 text" in refused(model, "--token-file", empty)


def test_a_port_that_is_taken(model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port} cannot be used" in refused(model, "--port", port)


def test_files_that_are_no_models(model, tmp_path):
    assert "nothing.safetensors" in refused(tmp_path / "nothing.safetensors", "--port", 0)
    odd = tmp_path / "odd.safetensors"
    odd.write_bytes(b"odd")
    assert "odd.safetensors" in refused(odd, "--port", 0)
    assert "Give a model file" in refused(tmp_path)


def test_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'latem[serve]'" in refused(model)
    result = CliRunner().invoke(app, ["demo", "--serve"])
    assert result.exit_code == 1
    assert "pip install 'latem[serve]'" in " ".join(result.output.split())
