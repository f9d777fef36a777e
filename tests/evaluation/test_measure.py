"""`evaluate` and `latem evaluate`: numbers by hand, and nothing learned from what is measured."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import latem
from latem import ESZSL, LatEm, Split, ZeroShotDataset, make_latent_world, write_folder
from latem.cli.evaluate import evaluate_command
from latem.datasets import hold_out
from latem.evaluation import evaluate
from latem.metrics import mean_class_accuracy, top_k_accuracy
from latem.metrics.generalized import ausuc, best_gamma, generalized_accuracy


@pytest.fixture(scope="module")
def world():
    """Few classes in many dimensions: models prefer those they have seen."""
    world = make_latent_world(
        n_poses=1, n_seen=20, n_unseen=6, n_dimensions=24, n_images=10, noise=1.5, random_state=0
    )
    return replace(world, splits={"standard": hold_out(world, world.split())})


@pytest.fixture(scope="module")
def model(world):
    return ESZSL(world.embeddings["att"])


@pytest.fixture(scope="module")
def result(world, model):
    return evaluate(latem.ESZSL(model.class_embeddings), world, generalized=True, calibrate=True)


def twin(world, model, share=0.2, seed=0):
    """The model as fitted without val classes, and the images that were kept aside."""
    split = world.split()
    rows = np.array([r for r in world.rows(split.train) if r not in split.held_out])
    rng, aside = np.random.default_rng(seed), []
    for name in sorted(split.train):
        own = rows[world.labels[rows] == name]
        aside.extend(rng.permutation(own)[: round(share * len(own))])
    kept = np.setdiff1d(rows, aside)
    return model.fit(world.features[kept], world.labels[kept]), np.sort(aside)


# -- the numbers ------------------------------------------------------------------------------


def test_unseen_classes_by_hand(world, model, result):
    X, y = world.testing()
    names = world.split().test
    fitted = ESZSL(model.class_embeddings).fit(*world.training())
    named = fitted.predict(X, names)
    assert result.top_1 == mean_class_accuracy(y, named)
    assert result.top_5 == top_k_accuracy(y, fitted.decision_function(X, names), names, 5)
    assert 0.3 < result.top_1 < result.top_5 < 1
    assert result.per_class == {n: (named[y == n] == n).mean() for n in names}
    assert (result.n_images, result.n_classes) == (60, 6)
    assert (result.model, result.split) == ("ESZSL", "standard")


def test_generalized_setting_by_hand(world, model, result):
    split = world.split()
    small, aside = twin(world, ESZSL(model.class_embeddings))
    seen, unseen = sorted(split.train), sorted(split.val)
    rows = np.concatenate([aside, [r for r in world.rows(unseen) if r not in split.held_out]])
    scores = small.decision_function(world.features[rows], seen + unseen)
    gamma = best_gamma(scores, world.labels[rows], seen + unseen, seen)
    assert result.generalized.gamma == pytest.approx(gamma)

    fitted = ESZSL(model.class_embeddings).fit(*world.training())
    classes = sorted(split.train + split.val) + list(split.test)
    rows = np.concatenate([split.held_out, world.rows(split.test)])
    scores, y = fitted.decision_function(world.features[rows], classes), world.labels[rows]
    seen = split.train + split.val
    found = result.generalized
    assert found.plain == generalized_accuracy(scores, y, classes, seen)
    assert found.stacked == generalized_accuracy(scores, y, classes, seen, gamma)
    assert found.ausuc == ausuc(scores, y, classes, seen)
    named = np.array(classes)[scores.argmax(axis=1)]
    of_seen = np.isin(y, seen)
    assert found.plain.seen == mean_class_accuracy(y[of_seen], named[of_seen])
    assert found.plain.unseen == mean_class_accuracy(y[~of_seen], named[~of_seen])
    assert (found.n_seen_images, found.n_unseen_images) == (40, 60)
    assert (found.n_seen, found.n_unseen) == (20, 6)


def test_calibrated_stacking_helps_where_seen_classes_are_preferred(result):
    found = result.generalized
    assert found.gamma > 0
    assert found.stacked.unseen > found.plain.unseen
    assert found.stacked.harmonic > found.plain.harmonic + 0.05


def test_probabilities_by_hand(world, model, result):
    small, _ = twin(world, ESZSL(model.class_embeddings))
    X, y = world.validation()
    report = small.calibrate(X, y)
    found = result.probabilities
    assert found.val.temperature == found.test.temperature
    assert found.val.temperature == pytest.approx(report.temperature)
    assert found.val.log_loss_after == pytest.approx(report.log_loss_after)
    assert found.val.ece_before == pytest.approx(report.ece_before)

    fitted = ESZSL(model.class_embeddings).fit(*world.training())
    fitted.temperature_ = found.val.temperature
    X, y = world.testing()
    names = np.array(world.split().test)
    p = fitted.predict_proba(X, names)
    own = p[np.arange(len(y)), [names.tolist().index(name) for name in y]]
    assert found.test.log_loss_after == pytest.approx(-np.log(own).mean(), rel=1e-4)
    assert found.test.log_loss_after < found.test.log_loss_before
    assert found.test.n_images == 60
    wrong = names[p.argmax(axis=1)] != y
    assert found.risk_coverage.at(1) == pytest.approx(wrong.mean())
    surest = np.argsort(-p.max(axis=1))[:30]
    assert found.risk_coverage.at(0.5) == pytest.approx(wrong[surest].mean())


def test_the_temperature_stays_in_the_model(world, model):
    fresh = ESZSL(model.class_embeddings)
    found = evaluate(fresh, world, calibrate=True)
    assert fresh.temperature_ == found.probabilities.val.temperature
    fresh.choose_rejection(*world.testing(), world.split().test, coverage=0.5)
    evaluate(fresh, world, generalized=True)  # leaves both alone
    assert fresh.temperature_ == found.probabilities.val.temperature
    assert hasattr(fresh, "rejection_threshold_")
    again = evaluate(fresh, world, calibrate=True)  # with the temperature that is there
    assert again.probabilities == found.probabilities
    assert ", fitted on" in found.to_text()
    assert ", the model's own, here on" in again.to_text()
    assert hasattr(fresh, "rejection_threshold_")


def test_a_fitted_model_is_used_as_it_is(world, model, result):
    fitted = ESZSL(model.class_embeddings).fit(*world.training())
    before = fitted.map_
    assert evaluate(fitted, world, generalized=True).generalized == result.generalized
    assert fitted.map_ is before
    other = ESZSL(model.class_embeddings, gamma=100.0).fit(*world.training())
    assert evaluate(other, world).top_1 == other.score(*world.testing())


def test_a_part_alone_is_the_same_as_both_together(world, model, result):
    alone = evaluate(ESZSL(model.class_embeddings), world, calibrate=True)
    assert alone.generalized is None
    assert alone.probabilities.val == result.probabilities.val
    assert alone.probabilities.test == result.probabilities.test
    alone = evaluate(ESZSL(model.class_embeddings), world, generalized=True)
    assert alone.probabilities is None
    assert alone.generalized == result.generalized


def test_a_split_of_ones_own(world, model, result):
    bare = make_latent_world(
        n_poses=1, n_seen=20, n_unseen=6, n_dimensions=24, n_images=10, noise=1.5, random_state=0
    )
    found = evaluate(ESZSL(model.class_embeddings), bare, world.split(), generalized=True)
    assert found.generalized == result.generalized
    assert found.split == "custom"


def test_which_images_are_kept_aside(world, model):
    gammas = [
        evaluate(ESZSL(model.class_embeddings), world, generalized=True, seed=s).generalized.gamma
        for s in (0, 0, 1)
    ]
    assert gammas[0] == gammas[1] != gammas[2]


# -- every kind of model ----------------------------------------------------------------------


def test_models_that_chose_something_keep_their_choice(world):
    table = world.embeddings["att"]
    val = list(world.split().val)

    def numbers(model):
        found = evaluate(model, world, generalized=True, calibrate=True)
        return found.generalized, found.probabilities.val

    options = {"gammas": [0.1, 1.0], "lams": [1.0], "labels": "±1"}
    cv = latem.ESZSLCV(table, cv=val, **options)
    by_cv = numbers(cv)
    chosen = ESZSL(table, gamma=cv.gamma_, lam=cv.lam_, labels="±1")
    assert by_cv == numbers(chosen)
    search = latem.HeldOutSearch(ESZSL(table, labels="±1"), {"gamma": [0.1, 1.0]}, cv=val)
    by_search = numbers(search)
    assert by_search == numbers(ESZSL(table, labels="±1", **search.best_params_))


def test_a_fusion_keeps_its_weights(world):
    table = world.embeddings["att"]
    X, y = world.training()
    members = [("a", ESZSL(table).fit(X, y)), ("b", ESZSL(table, gamma=50.0).fit(X, y))]
    prefit = latem.LateFusion(members, prefit=True).fit(X, y)
    prefit.weights_ = np.array([0.9, 0.1])
    named = latem.LateFusion(members, weights=[0.9, 0.1])
    assert evaluate(prefit, world, generalized=True) == evaluate(named, world, generalized=True)
    even = evaluate(latem.LateFusion(members), world, generalized=True)
    assert even.generalized.gamma != evaluate(named, world, generalized=True).generalized.gamma


def test_the_twin_is_trained_as_long_as_the_model(world):
    table = world.embeddings["att"]
    X, y = world.training()
    stopped = LatEm(table, n_epochs=50, random_state=0)
    stopped.fit(X, y, callback=lambda info: info.epoch == 3)
    short = LatEm(table, n_epochs=3, random_state=0)
    assert evaluate(stopped, world, generalized=True) == evaluate(short, world, generalized=True)


# -- no peeking -------------------------------------------------------------------------------


def test_labels_and_images_of_what_is_measured_cannot_matter(world, model, result):
    rng = np.random.default_rng(0)
    split = world.split()
    test = world.rows(split.test)
    labels, features = world.labels.copy(), world.features.copy()
    labels[test] = rng.permutation(labels[test])
    shuffled = replace(world, labels=labels)
    features[list(split.held_out)] = rng.normal(size=(len(split.held_out), features.shape[1]))
    noisy = replace(world, features=features)
    for other in (shuffled, noisy):
        found = evaluate(ESZSL(model.class_embeddings), other, generalized=True, calibrate=True)
        assert found.generalized.gamma == result.generalized.gamma
        assert found.probabilities.val == result.probabilities.val
        assert found.generalized.plain != result.generalized.plain


def test_descriptions_of_test_classes_cannot_matter(world, result):
    table = world.embeddings["att"]
    names = list(world.split().train + world.split().val)
    rest = [name for name in table.names if name not in names]
    vectors = np.concatenate([table.select(names).vectors, table.select(rest).vectors[::-1]])
    other = latem.ClassEmbeddings(names + rest, vectors, name="att")
    found = evaluate(ESZSL(other), world, generalized=True, calibrate=True)
    assert found.generalized.gamma == result.generalized.gamma
    assert found.probabilities.val == result.probabilities.val
    assert found.top_1 != result.top_1


# -- refusing ---------------------------------------------------------------------------------


def with_split(world, **change):
    return replace(world, splits={"standard": replace(world.split(), **change)})


def test_splits_that_do_not_allow_it(world, model):
    fresh = ESZSL(model.class_embeddings)
    with pytest.raises(
        ValueError, match=r"holds out no images of seen classes, .* latem\.hold_out"
    ):
        evaluate(fresh, with_split(world, held_out=()), generalized=True)
    train = world.split().train + world.split().val
    for parts in ({"train": train, "val": ()}, {"train": train[:-1], "val": train[-1:]}):
        for what in ({"generalized": True}, {"calibrate": True}):
            with pytest.raises(ValueError, match=r"held-out classes, but .* \d val classes"):
                evaluate(fresh, with_split(world, **parts), **what)
        assert evaluate(ESZSL(model.class_embeddings), with_split(world, **parts)).n_images == 60
    with pytest.raises(ValueError, match="no images of test classes"):
        evaluate(fresh, with_split(world, test=()))
    with pytest.raises(ValueError, match="no split 'other'; it has standard"):
        evaluate(fresh, world, "other")
    assert not hasattr(fresh, "map_")  # refused before anything was fitted


def test_models_that_know_too_much_or_too_little(world, model):
    X, y = world.features, world.labels
    with pytest.raises(ValueError, match="ESZSL was fitted to 'class 20', .*, test classes"):
        evaluate(ESZSL(model.class_embeddings).fit(X, y), world)
    part = ESZSL(model.class_embeddings).fit(*world.training(val=False))
    with pytest.raises(ValueError, match=r"other classes \('class 16', .*dataset.training"):
        evaluate(part, world, generalized=True)
    assert evaluate(part, world, calibrate=True).top_1 == part.score(*world.testing())
    narrow = ESZSL(model.class_embeddings.select(np.unique(world.training()[1])))
    with pytest.raises(ValueError, match="no rows for 'class 20'"):
        evaluate(narrow, world)
    with pytest.raises(TypeError, match="a model of latem, not Pipeline"):
        evaluate(make_pipeline(model), world)
    with pytest.raises(ValueError, match="share must lie between 0 and 1, but is 1"):
        evaluate(ESZSL(model.class_embeddings), world, generalized=True, share=1)


def test_classes_with_a_single_image(world, model):
    """They cannot be kept aside; all of them together are refused."""
    split = world.split()
    first = [world.rows([name])[0] for name in split.train]
    rest = np.setdiff1d(world.rows(split.train), first)
    alone = with_split(world, held_out=tuple(rest.tolist()))
    with pytest.raises(ValueError, match="every train class has only one"):
        evaluate(ESZSL(model.class_embeddings), alone, generalized=True)
    assert evaluate(ESZSL(model.class_embeddings), alone, calibrate=True).probabilities is not None
    few = with_split(world, held_out=tuple(rest[9:].tolist()))  # but for ten of the first class
    assert evaluate(ESZSL(model.class_embeddings), few, generalized=True).generalized is not None


def test_one_test_class_is_refused(world, model):
    with pytest.raises(ValueError, match="only one test class"):
        evaluate(model, with_split(world, test=world.split().test[:1]))


def test_a_model_without_a_seed_is_evaluated_alike_each_time(world):
    model = LatEm(world.embeddings["att"], n_maps=2, n_epochs=3).fit(*world.training())
    results = [evaluate(model, world, generalized=True, calibrate=True) for _ in range(2)]
    assert results[0] == results[1]
    other = evaluate(model, world, generalized=True, calibrate=True, seed=1)
    assert other.probabilities != results[0].probabilities


def test_fewer_than_five_classes_have_no_top_5(world, model):
    small = with_split(world, test=world.split().test[:4])
    found = evaluate(ESZSL(model.class_embeddings), small)
    assert found.top_5 is None
    assert "top-5" not in found.to_text()
    assert found.n_classes == 4


# -- showing ----------------------------------------------------------------------------------


def test_plain_data(result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["top_1"] == result.top_1
    assert {row["class"]: row["accuracy"] for row in data["per_class"]} == result.per_class
    assert data["generalized"]["stacked"]["harmonic"] == result.generalized.stacked.harmonic
    assert data["generalized"]["plain"]["unseen"] == result.generalized.plain.unseen
    assert data["probabilities"]["test"]["ece_after"] == result.probabilities.test.ece_after
    points = data["probabilities"]["risk_coverage"]["points"]
    assert points[0] == {"coverage": 1.0, "risk": result.probabilities.risk_coverage.at(1)}


def test_text_always_shows_both(result):
    text = result.to_text()
    assert str(result) == text
    lines = {line.split("  ")[1]: line.split() for line in text.splitlines() if line[:2] == "  "}
    found = result.generalized
    stacked = lines[f"calibrated stacking, γ = {found.gamma:.4g}"]
    for scores, line in ((found.plain, lines["as it is"]), (found.stacked, stacked)):
        shown = (scores.seen, scores.unseen, scores.harmonic, found.ausuc)
        assert line[-4:] == [f"{value:.1%}" for value in shown]
    assert f"top-1 {result.top_1:.1%}" in text
    assert f"temperature {result.probabilities.val.temperature:.4g}" in text
    for name, value in result.per_class.items():
        assert f"{name}  " in text
        assert f"{value:.1%}" in text


# -- the command ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app():
    app = typer.Typer()
    app.command()(evaluate_command)
    return app


@pytest.fixture(scope="module")
def files(world, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    write_folder(replace(world, name="tiny"), folder / "data")
    ESZSL(model.class_embeddings).fit(*world.training()).save(folder / "model")
    return [str(folder / "model"), str(folder / "data")]


def test_command_prints_a_table(app, files, result):
    before = Path(files[0]).read_bytes()
    done = CliRunner().invoke(app, [*files, "--generalized", "--probabilities"])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("ESZSL, split standard of tiny\n")
    assert done.stdout.splitlines()[1:] == result.to_text().splitlines()[1:]
    assert Path(files[0]).read_bytes() == before


def test_command_prints_json_and_writes_csv(app, files, result, tmp_path):
    target = tmp_path / "numbers.csv"
    options = ["--generalized", "--probabilities", "--json", "--csv", str(target)]
    done = CliRunner().invoke(app, [*files, *options])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown == {**result.to_dict(), "dataset": "tiny"}
    with open(target, encoding="utf-8", newline="") as file:
        lines = {(row["part"], row["measure"]): row["value"] for row in csv.DictReader(file)}
    assert float(lines["unseen", "top_1"]) == result.top_1
    assert float(lines["unseen, per class", "class 20"]) == result.per_class["class 20"]
    assert float(lines["generalised", "harmonic"]) == result.generalized.plain.harmonic
    assert float(lines["generalised, stacked", "harmonic"]) == result.generalized.stacked.harmonic
    assert float(lines["generalised, stacked", "gamma"]) == result.generalized.gamma
    assert float(lines["probabilities, val", "temperature"]) == (
        result.probabilities.val.temperature
    )
    assert float(lines["probabilities, test", "log_loss_before"]) == (
        result.probabilities.test.log_loss_before
    )
    assert len(lines) == len(result.to_rows())


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--split", "other"], 1, "no split 'other'"),
        (["--csv", "nowhere/x.csv"], 1, "no folder"),
        (["--nonsense"], 2, "No such option"),
    ],
)
def test_command_fails_with_a_sentence(app, files, options, code, message):
    done = CliRunner().invoke(app, [*files, *options])
    assert done.exit_code == code
    assert message in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_command_without_what_it_needs(app, files, tmp_path):
    done = CliRunner().invoke(app, [str(tmp_path / "none"), files[1]])
    assert done.exit_code == 1
    assert "no model file" in done.output
    assert CliRunner().invoke(app, [files[0]]).exit_code == 2


def test_integer_class_names():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 6)
    vectors = rng.normal(size=(8, 4))
    features = vectors[labels] + 0.1 * rng.normal(size=(48, 4))
    table = latem.ClassEmbeddings(range(8), vectors)
    split = Split((0, 1, 2, 3), (4, 5), (6, 7))
    dataset = ZeroShotDataset(features, labels, {"att": table}, {"standard": split})
    dataset = replace(dataset, splits={"standard": hold_out(dataset, split)})
    found = evaluate(ESZSL(table), dataset, generalized=True, calibrate=True)
    assert list(found.per_class) == [6, 7]
    assert json.loads(json.dumps(found.to_dict()))["per_class"][0]["class"] == 6
