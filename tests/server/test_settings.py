"""Where a server may listen, and what a token must be."""

import pytest

from latem.server.settings import Settings, is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])
def test_other_machines_need_a_token(host):
    with pytest.raises(ValueError, match="it needs a token"):
        Settings(host=host)
    assert Settings(host=host, token="x" * 16).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "[::1]", "localhost"])
def test_this_machine_needs_none(host):
    assert is_loopback(host)
    assert Settings(host=host).token is None


def test_poor_tokens_are_refused():
    with pytest.raises(ValueError, match="too short"):
        Settings(token="secret")
    with pytest.raises(ValueError, match="printable ASCII"):
        Settings(token="x" * 20 + "ü")
    with pytest.raises(ValueError, match="printable ASCII"):
        Settings(token="x" * 20 + "\n")


def test_the_token_is_not_shown():
    assert "x" * 20 not in repr(Settings(token="x" * 20))


def test_host_names():
    assert Settings().hosts == {"localhost", "127.0.0.1", "::1"}
    assert "birds.example" in Settings(allowed_hosts=("Birds.Example",)).hosts
    assert Settings(host="0.0.0.0", token="x" * 20).hosts is None
    named = Settings(host="0.0.0.0", token="x" * 20, allowed_hosts=("a.b",))
    assert "a.b" in named.hosts
