import pytest
from numba import njit

from latem.models.sgd import kernels
from latem.models.sgd.loop import LONGEST_BLOCK, SHORTEST_BLOCK
from latem.models.sgd.pairs import pair_form, pair_length


@pytest.mark.parametrize(
    ("problem", "form"),
    [
        ((150, 1024, 312, 6), "class"),  # CUB
        ((40, 1024, 85, 16), "class"),  # AWA
        ((574, 1280, 384, 1), "class"),  # emoji
        ((20_000, 1024, 500, 4), "embedding"),
        ((20_000, 1024, 20_000, 4), "embedding"),  # one-hot, but too large for memory
        ((1000, 64, 5, 2), "embedding"),
    ],
)
def test_form_follows_the_sizes(problem, form):
    assert pair_form(*problem) == form


def test_blocks_grow_as_violations_become_rare():
    lengths = [pair_length(150, 6, rate) for rate in (1.0, 0.5, 0.1, 0.01, 0.0)]
    assert lengths == sorted(lengths)
    assert lengths[0] >= SHORTEST_BLOCK
    assert lengths[-1] == LONGEST_BLOCK
    assert pair_length(2, 1, 1.0) == SHORTEST_BLOCK


def test_compiled_where_nothing_can_be_kept_on_disk(monkeypatch):
    def without_cache(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function 'f': no locator available")
        return njit(**options)

    monkeypatch.setattr(kernels, "njit", without_cache)
    assert kernels.compiled()(lambda x: x + 1)(2) == 3
