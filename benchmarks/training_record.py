"""What it costs to remember which images a model was fitted to.

Training images of the size of CUB: 8,000 of 1,024 features, 150 classes of 312 attributes. The
ratio is the time for the record against that of the whole fit: of the quickest model, a closed
form, and of LatEm with the paper's 150 epochs.
"""

import numpy as np
from machine import best_time, keep, show

from latem import ESZSL, LatEm
from latem.models.training_record import row_hashes

N_IMAGES, N_FEATURES, N_CLASSES, N_DIMENSIONS = 8000, 1024, 150, 312


def main():
    rng = np.random.default_rng(0)
    X, y = rng.random((N_IMAGES, N_FEATURES), np.float32), np.arange(N_IMAGES) % N_CLASSES
    table = (range(N_CLASSES), rng.random((N_CLASSES, N_DIMENSIONS)))
    record = best_time(lambda: row_hashes(X), 5)
    found = {"record_ms": 1e3 * record}
    rows = []
    latem = LatEm(table, n_epochs=150, random_state=0)
    latem.fit(X[:300], y[:300])  # compiled before the clock runs
    for model, repeats in ((ESZSL(table), 3), (latem, 1)):
        seconds = best_time(lambda model=model: model.fit(X, y), repeats)
        name = type(model).__name__
        found[name] = {"fit_ms": 1e3 * seconds, "ratio": round(record / seconds, 4)}
        rows.append((name, f"{seconds:.2f} s", f"{1e3 * record:.0f} ms", f"{record / seconds:.1%}"))
    show("Record of training images, sizes of CUB", ("", "fit", "record", "ratio"), rows)
    keep("training_record", found)


if __name__ == "__main__":
    main()
