"""Training with 20,000 classes: nothing of size classes², within 4 GiB.

Runs in a process of its own, so that its peak memory is its own.
"""

import resource
import subprocess
import sys

import numpy as np
from machine import keep

N, D, CLASSES, E, MAPS, EPOCHS = 40_000, 1024, 20_000, 500, 4, 2
BAR = 4.0


def train():
    from latem import ClassEmbeddings, LatEm

    rng = np.random.default_rng(0)
    Y = rng.standard_normal((CLASSES, E)).astype(np.float32)
    y = np.arange(N) % CLASSES
    hidden = rng.standard_normal((E, D)).astype(np.float32) / np.sqrt(E)
    X = Y[y] @ hidden
    X += rng.standard_normal(X.shape, dtype=np.float32)
    table = ClassEmbeddings(range(CLASSES), Y)
    model = LatEm(table, n_maps=MAPS, n_epochs=EPOCHS, random_state=0)
    model.fit(X, y)
    top = model.top_k(X[:2000], 5)
    hits = (top == y[:2000, None]).any(axis=1).mean()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{peak} {hits} {model.history_['violation_rate'][-1]}")


if __name__ == "__main__":
    if "--child" in sys.argv:
        train()
    else:
        command = [sys.executable, __file__, "--child"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peak, hits, rate = map(float, output.split())
        print(
            f"{CLASSES} classes, d_y = {E}, d_x = {D}, K = {MAPS}, {N} images, {EPOCHS} epochs: "
            f"peak of the whole process {peak:.2f} GiB (bar: {BAR} GiB; a {CLASSES}² matrix alone "
            f"would take {CLASSES**2 * 4 / 2**30:.2f}), violations {rate:.1%}, true class among "
            f"the best 5 of {CLASSES} for {hits:.1%} of training images"
        )
        keep("many_classes", {"peak_gib": peak, "bar_gib": BAR, "top_5": hits, "rate": rate})
