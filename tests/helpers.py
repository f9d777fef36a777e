"""Things several tests need."""

import gzip

import numpy as np

from latem import LatEm
from latem.models.spaces import ClassSpace, EmbeddingSpace

FORMS = {"class": ClassSpace, "embedding": EmbeddingSpace}


class ScriptedLatEm(LatEm):
    """LatEm with its random choices injected: initial maps, order, rivals, form.

    Everything else is the estimator's own training loop.
    """

    def script(self, maps, visits, form):
        self.scripted_maps, self.scripted_visits, self.form = maps, visits, form
        return self

    def _initial_maps(self, shape):
        assert shape == self.scripted_maps.shape
        return self.scripted_maps.astype(self.dtype)

    def _visits(self, epoch, labels):
        return self.scripted_visits[epoch - 1]

    def _space(self, maps, vectors):
        return FORMS[self.form](maps, vectors)


def random_problem(seed, n=40, d=6, c=5, e=4, k=3, epochs=3):
    """A small random training problem with its visits drawn in advance."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    visits = []
    for _ in range(epochs):
        order = rng.permutation(n)
        rivals = rng.integers(0, c - 1, n)
        rivals += rivals >= y[order]
        visits.append((order, rivals))
    return {
        "X": rng.normal(size=(n, d)),
        "y": y,
        "Y": rng.normal(size=(c, e)),
        "W": rng.normal(size=(k, d, e)) / np.sqrt(d),
        "visits": visits,
    }


def zipped(path):
    target = path.with_name(path.name + ".gz")
    target.write_bytes(gzip.compress(path.read_bytes()))
    return target
