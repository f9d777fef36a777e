"""A search on held-out classes on a Dask cluster of one worker and of two: speed and bytes.

Workers are processes with a thread each; every one trains what it is given by itself. With one
worker joblib runs all tasks in the process that asks, so that "one" is the quickest that one core
can be. Workers keep the memory that they have freed (docs/scale.md says how and why).
"""

import hashlib
import time

import numpy as np
from machine import keep

from latem import LatEmCV, make_latent_world
from latem.core.cluster import on_cluster

CLASSES, IMAGES, FEATURES = 150, 60, 1024  # as large as CUB
BAR = 1.6


def search(address):
    """Seconds of a search, and a digest of what it chose."""
    world = make_latent_world(
        n_seen=CLASSES, n_unseen=10, n_images=IMAGES, n_features=FEATURES, random_state=0
    )
    model = LatEmCV(
        world.embeddings["att"], preset="paper", n_maps=[2, 4, 6, 8], learning_rate=[1e-3, 1e-2],
        n_epochs=30, cv=5, random_state=0, n_threads=1,
    )  # fmt: skip
    X, y = world.training()
    with on_cluster(address):
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
    return seconds, hashlib.sha256(model.best_estimator_.maps_.tobytes()).hexdigest()[:16]


def on_workers(n_workers):
    import dask
    from distributed import LocalCluster

    setting = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
    with (
        dask.config.set(setting),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
    ):
        cluster.wait_for_workers(n_workers)
        search(cluster.scheduler_address)  # compiles, and imports
        runs = [search(cluster.scheduler_address) for _ in range(2)]
    return min(seconds for seconds, _ in runs), {digest for _, digest in runs}


if __name__ == "__main__":
    search(None)
    alone, digest = search(None)
    one, first = on_workers(1)
    two, second = on_workers(2)
    same = first == second == {digest}
    print(
        f"search of 8 candidates, 5 folds, {CLASSES * IMAGES} images of {FEATURES} features: two "
        f"workers {one / two:.2f} times as fast as one (bar: {BAR}), "
        f"{'the same bytes' if same else 'OTHER BYTES'} as in one process; one worker takes "
        f"{one / alone:.2f} times as long as no cluster"
    )
    figures = {"two_workers_to_one": one / two, "bar": BAR, "same_bytes": same}
    keep("cluster", {**figures, "one_worker_to_none": one / alone, "numpy": np.__version__})
