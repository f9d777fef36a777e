"""
A baseline of one's own
=======================

A model is one class that says how it learns and how it scores. Candidates, new classes, searches
on held-out classes, files and explanations come from the base class ``TableClassifier``, which is
documented in ``docs/adding-a-model.md``.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import latem
from latem import ESZSL, HeldOutSearch, TableClassifier, load_emoji, register


class PredictedMean(TableClassifier):
    """Predicts from a class's vector where its pictures lie; the nearest mean is the answer."""

    _learned = "map_"  # there once the model is fitted

    def __init__(
        self,
        class_embeddings=None,
        *,
        alpha=1.0,
        feature_scaling="zscore",
        normalize_classes=True,
        n_threads=None,
        dtype="float32",
    ):
        self.class_embeddings, self.alpha, self.dtype = class_embeddings, alpha, dtype
        self.feature_scaling, self.normalize_classes = feature_scaling, normalize_classes
        self.n_threads = n_threads

    def fit(self, X, y):
        """Ridge regression from class vectors to the means of their pictures."""
        X, codes = self._begin_anew(X, y)  # checked pictures, and row numbers in classes_
        images, S = self.scaler_.transform(X, np.float64), self.class_view_.training(np.float64)
        means = np.stack([images[codes == c].mean(axis=0) for c in range(len(S))])
        self.map_ = np.linalg.solve(S.T @ S + self.alpha * np.eye(S.shape[1]), S.T @ means)
        self.map_ = self.map_.astype(self.dtype_)
        return self

    def _block_scorer(self, chosen):
        means = chosen.vectors @ self.map_
        return lambda X: 2 * X @ means.T - np.square(means).sum(axis=1)

    def _state(self):
        return {"map": self.map_}, {}  # arrays, and plain data

    def _restore(self, tensors, record):
        shape = (self.class_table_.n_dimensions, self.n_features_in_)
        self.map_ = self._check_tensor(tensors, "map", shape)


register(PredictedMean, grid={"alpha": (0.1, 1.0, 10.0)})

# %%
# Its parameter is chosen on the val classes, from the grid that it was registered with.

emoji = load_emoji()
sentences, val = emoji.embeddings["text"], emoji.split("standard").val
X, y = emoji.testing("standard")
scores = {}
few = {"gamma": (1.0, 10.0), "lam": (0.1, 1.0)}
for model, grid in ((PredictedMean(sentences), None), (ESZSL(sentences), few)):
    search = HeldOutSearch(model, grid, cv=val).fit(*emoji.training("standard"))
    name = type(model).__name__
    scores[name] = search.score(X, y, "unseen")
    print(f"{name}: {scores[name]:.1%} with {search.best_params_}")

# %%
# Saving and loading work as for the library's own models, to the last bit.

own = PredictedMean(sentences, alpha=1.0).fit(*emoji.training("standard"))
with tempfile.TemporaryDirectory() as folder:
    own.save(Path(folder) / "own.safetensors")
    again = latem.load(Path(folder) / "own.safetensors")
same = np.array_equal(own.decision_function(X, "unseen"), again.decision_function(X, "unseen"))
print("the same after loading:", same)

figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
axes.bar(list(scores), 100 * np.array(list(scores.values())), color=["C1", "C0"])
axes.axhline(100 / 60, color="black", linestyle=":", label="guessing")
axes.set(ylabel="unseen classes named right (%)")
axes.legend()
plt.show()
