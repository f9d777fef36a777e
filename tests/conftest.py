"""What holds for all tests."""

import pytest
from hypothesis import settings

# A busy machine may take long over any example.
settings.register_profile("patient", parent=settings(), deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A cache of the tests' own: what the user's holds does not matter, and it stays as it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATEM_CACHE", str(tmp_path_factory.mktemp("cache") / "latem"))
        yield
