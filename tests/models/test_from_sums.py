"""Models fitted to blocks of images are the models fitted to all of them."""

import numpy as np
import pytest

from latem import CCA, ESZSL, ESZSLCV, EXEM, SAE, SJE, LatEm, LatEmCV, make_latent_world
from latem.models import block_images
from latem.models.latem import TUNED
from latem.models.training_record import row_hashes

MODELS = {
    "ESZSL": lambda t, **kw: ESZSL(t, **kw),
    "ESZSL, balanced": lambda t, **kw: ESZSL(t, balance_classes=True, labels="±1", **kw),
    "SAE": lambda t, **kw: SAE(t, **kw),
    "CCA": lambda t, **kw: CCA(t, **kw),
    "EXEM": lambda t, **kw: EXEM(t, **kw),
    "EXEM, whitened": lambda t, **kw: EXEM(t, neighbour="whitened", **kw),
}
SCALINGS = ["zmax", "zscore", "l2", "l2-centered", None]


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_seen=12, n_unseen=4, n_images=12, n_poses=1, random_state=3)


def in_dask(X, y, rows=17):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


def in_pairs(X, y, rows=17):
    return ((X[i : i + rows], y[i : i + rows]) for i in range(0, len(X), rows)), None


def in_parquet(X, y, folder, rows=50):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import dataset, parquet

    for i in range(0, len(X), rows):
        lists = pa.FixedSizeListArray.from_arrays(X[i : i + rows].ravel(), X.shape[1])
        table = pa.table({"features": lists, "class": y[i : i + rows].astype(str)})
        parquet.write_table(table, folder / f"{i:05}.parquet")
    return dataset.dataset(folder), "class"


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("name", MODELS)
def test_sums_of_blocks_give_the_model_of_the_whole(world, name, scaling):
    X, y = world.training()
    # far from zero, where sums of squares would lose digits; without scaling the models do, too
    away = 0 if scaling is None else 100
    X = X.astype(np.float64) + away
    unseen = world.testing()[0].astype(np.float64) + away
    make = lambda: MODELS[name](  # noqa: E731
        world.embeddings["att"], feature_scaling=scaling, dtype="float64"
    )
    whole = make().fit(X, y)
    parts = make().fit(*in_dask(X, y))
    assert parts.classes_.tolist() == whole.classes_.tolist()
    assert parts.training_digest_ == whole.training_digest_
    close(parts.scaler_.shift, whole.scaler_.shift)
    close(parts.scaler_.scale, whole.scaler_.scale)
    close(parts.decision_function(unseen, "unseen"), whole.decision_function(unseen, "unseen"))


@pytest.mark.parametrize("given", ["pairs", "parquet", "frame"])
def test_whatever_the_blocks_are(world, given, tmp_path):
    X, y = (np.asarray(one) for one in world.training())
    whole = ESZSL(world.embeddings["att"], dtype="float64").fit(X, y)
    if given == "pairs":
        images = in_pairs(X, y)
    elif given == "parquet":
        images = in_parquet(X, y, tmp_path)
    else:
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
        images = (
            dd.from_pandas(frame, npartitions=5),
            dd.from_pandas(pd.Series(y.astype(str)), npartitions=5),
        )
    parts = ESZSL(world.embeddings["att"], dtype="float64").fit(*images)
    close(parts.map_, whole.map_)
    assert parts.training_digest_ == whole.training_digest_
    if given == "frame":
        assert parts.feature_names_in_.tolist()[:2] == ["f0", "f1"]


def test_sums_do_not_depend_on_who_adds_them_up(world):
    dask = pytest.importorskip("dask")
    X, y = world.training()
    maps = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            maps.append(ESZSL(world.embeddings["att"]).fit(*in_dask(X, y)).map_)
    maps.append(ESZSL(world.embeddings["att"]).fit(*in_pairs(X, y)).map_)
    assert maps[0].tobytes() == maps[1].tobytes() == maps[2].tobytes()


def test_a_fit_to_blocks_travels(world, tmp_path):
    import latem

    model = ESZSL(world.embeddings["att"], balance_classes=True).fit(*in_pairs(*world.training()))
    model.save(tmp_path / "m.safetensors")
    again = latem.load(tmp_path / "m.safetensors")
    X = world.testing()[0]
    assert (again.predict(X, "unseen") == model.predict(X, "unseen")).all()
    assert again.training_digest_ == model.training_digest_


def test_latem_whose_sample_is_everything_is_latem(world):
    X, y = world.training()
    whole = LatEm(world.embeddings["att"], random_state=0, **TUNED).fit(X, y)
    parts = LatEm(world.embeddings["att"], random_state=0, **TUNED)
    parts.fit(*in_dask(X, y))
    assert (np.abs(parts.maps_ - whole.maps_) < 1e-4 * np.abs(whole.maps_).max()).all()
    assert parts.training_digest_ == whole.training_digest_


def test_latem_looks_at_a_sample_and_starts_from_all(world, monkeypatch, caplog):
    X, y = world.training()
    monkeypatch.setattr(block_images, "SAMPLE_BYTES", 40 * X.shape[1] * X.dtype.itemsize)
    options = {**TUNED, "n_epochs": 1, "learning_rate": 1e-12, "init_scale": 0.0}
    with caplog.at_level("INFO"):
        parts = LatEm(world.embeddings["att"], random_state=0, **options).fit(*in_dask(X, y))
    assert f"ranking looks at 40 of {len(X)} images" in caplog.text
    closed = ESZSL(
        world.embeddings["att"], gamma=parts.start_gamma, lam=parts.start_lam,
        feature_scaling=parts.feature_scaling, center_classes=parts.center_classes,
    ).fit(X, y)  # fmt: skip
    likeness = np.corrcoef(parts.maps_[0].ravel(), closed.map_.ravel())[0, 1]
    assert likeness > 1 - 1e-6
    assert (parts.training_rows() == np.unique(row_hashes(np.asarray(X)))).all()


def test_the_tuned_preset_on_blocks(world):
    X, y = world.training()
    options = {"random_state": 0, "cv": 3}
    whole = LatEmCV(world.embeddings["att"], **options).fit(X, y)
    parts = LatEmCV(world.embeddings["att"], **options).fit(*in_pairs(X, y))
    assert parts.best_params_ == whole.best_params_
    unseen = world.testing()
    assert parts.score(*unseen) == pytest.approx(whole.score(*unseen), abs=0.02)
    assert parts.training_digest_ == whole.training_digest_


def test_who_needs_all_images_says_so(world):
    for model in (SJE(world.embeddings["att"]), ESZSLCV(world.embeddings["att"])):
        for images in (in_pairs(*world.training()), in_dask(*world.training())):
            with pytest.raises(TypeError, match="needs all images in memory"):
                model.fit(*images)


def test_an_iterator_is_passed_over_once(world):
    with pytest.raises(ValueError, match="used up: it was read once"):
        EXEM(world.embeddings["att"]).fit(*in_pairs(*world.training()))


@pytest.mark.parametrize(
    ("option", "value"),
    [("checkpoint", "c.safetensors"), ("validation", (np.ones((2, 3)), ["a", "b"]))],
)
def test_what_blocks_do_not_go_with(world, option, value):
    with pytest.raises(ValueError, match="neither warm_start, checkpoint nor validation"):
        LatEm(world.embeddings["att"]).fit(*in_pairs(*world.training()), **{option: value})


BAD = {
    "no pair": (iter([np.ones((2, 3))]), "must give pairs"),
    "not finite": (iter([(np.array([[1.0, np.nan]]), np.array(["a"]))]), "row 0, column 1"),
    "an empty block": (iter([(np.ones((0, 3)), np.array([], str))]), "no image in block 0"),
    "no blocks": (iter([]), "There are no images"),
    "too few labels": (iter([(np.ones((3, 2)), np.array(["a"]))]), "labels (1,)"),
    "several widths": (
        iter([(np.ones((2, w)), np.array(["a", "b"])) for w in (3, 4)]),
        "3 and 4 features",
    ),
    "missing labels": (iter([(np.ones((2, 2)), np.array(["a", None]))]), "missing or of several"),
    "texts": (iter([(np.array([["x"]]), np.array(["a"]))]), "must be numbers"),
    "texts and numbers": (
        iter([(np.ones((1, 2)), np.array(["a"])), (np.ones((1, 2)), np.array([1]))]),
        "texts in some blocks",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_blocks(name):
    pairs, message = BAD[name]
    with pytest.raises((ValueError, TypeError)) as raised:
        ESZSL().fit(pairs)
    assert message in str(raised.value)
