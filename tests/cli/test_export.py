"""`latem export`: its help; what it does is tested with the workflow in tests/export."""

from helpers import command


def test_help_has_an_example():
    done = command("export", "--help")
    assert done.exit_code == 0
    assert "latem export birds.safetensors --onnx birds.onnx" in " ".join(done.output.split())
    assert "export" in command("--help").output
