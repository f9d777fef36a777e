"""What training would refuse, and what deserves a look before it."""

from dataclasses import replace

import numpy as np
import pytest

from latem import ClassEmbeddings, Split, make_latent_world
from latem.datasets.learnable import dominating_columns, learning_notes, table_warnings
from latem.workflows.train import train_model


@pytest.fixture(scope="module")
def world():
    return make_latent_world(n_poses=1, n_seen=6, n_unseen=3, n_images=5, random_state=0)


def with_split(world, **parts):
    return replace(world, splits={"standard": replace(world.split(), **parts)})


def with_vectors(world, vectors):
    table = world.embeddings["att"]
    return replace(world, embeddings={"att": ClassEmbeddings(table.names, vectors, name="att")})


def train(dataset, **options):
    return train_model(dataset, "att", kind="ESZSL", given={"gamma": 1.0, "lam": 1.0}, **options)


def test_a_usual_dataset_needs_no_notes(world):
    assert learning_notes(world, "standard", "att") == []
    assert train(world).notes == []


def test_no_image_is_left(world):
    split = world.split()
    rows = world.rows(split.train + split.val).tolist()
    odd = with_split(world, held_out=rows)
    for ask in (learning_notes, lambda dataset: train(dataset)):
        with pytest.raises(ValueError, match=rf"all {len(rows)} images of train and val .*fewer"):
            ask(odd)


def test_one_class_to_learn_from(world):
    split = world.split()
    odd = with_split(world, train=split.train[:1], val=())
    for ask in (learning_notes, lambda dataset: train(dataset)):
        with pytest.raises(ValueError, match="only one class, 'class 0+', has images to learn"):
            ask(odd)
    two = with_split(world, train=split.train[:1], val=split.train[1:2])
    assert learning_notes(two) == []
    keep = world.labels == world.labels[0]
    lone = replace(world, features=world.features[keep], labels=world.labels[keep], images=None)
    with pytest.raises(ValueError, match="The dataset: only one class"):
        learning_notes(lone, None)


def test_a_class_that_nothing_describes(world):
    vectors = world.embeddings["att"].vectors.copy()
    vectors[2] = 0
    odd = with_vectors(world, vectors)
    assert learning_notes(odd) == []  # no table is asked for
    with pytest.raises(ValueError, match="the vectors of 'class 0*2' are all zero"):
        learning_notes(odd, "standard", "att")
    with pytest.raises(ValueError, match="are all zero, which describes nothing"):
        train(odd)


def test_training_tells_of_classes_without_images(world):
    split = world.split()
    keep = ~np.isin(world.labels, [split.train[0], split.test[-1]])
    fewer = replace(world, features=world.features[keep], labels=world.labels[keep], images=None)
    notes = train(fewer).notes
    assert notes[0] == f"Split 'standard': train classes without images: {split.train[0]!r}."
    assert notes[1] == f"Split 'standard': test classes without images: {split.test[-1]!r}."


def test_training_tells_of_classes_that_are_held_out_whole(world):
    first = world.split().train[0]
    odd = with_split(world, held_out=world.rows([first]).tolist())
    (note,) = train(odd).notes
    assert f"all images of {first!r} are held out" in note


def test_training_tells_of_a_column_in_another_unit(world):
    vectors = world.embeddings["att"].vectors.copy()
    vectors[:, 1] *= 1000
    (note,) = train(with_vectors(world, vectors)).notes
    assert "Class table 'att': column 'att_001' varies more than 10 times" in note
    assert "--table" in note


def test_which_columns_dominate():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(30, 6))
    assert dominating_columns(vectors).tolist() == []
    vectors[:, [1, 4]] *= 500
    assert dominating_columns(vectors).tolist() == [1, 4]
    vectors[:, 0] = 7  # constant: says nothing of what is usual
    assert dominating_columns(vectors).tolist() == [1, 4]
    assert dominating_columns(vectors[:, :2]).tolist() == []  # too few to say which is odd


def test_rare_attributes_are_in_the_same_unit():
    """Ones and zeros: most attributes belong to one class of many, some to half of them."""
    vectors = np.zeros((500, 12))
    vectors[np.arange(10), np.arange(10)] = 1
    vectors[::2, 10:] = 1
    assert vectors.std(axis=0).max() > 10 * np.median(vectors.std(axis=0))
    assert dominating_columns(vectors).tolist() == []


def test_encoded_traits_are_on_one_scale():
    import pandas as pd

    raw = pd.DataFrame(
        {"weight": [12.0, 350.0, 9000.0], "legs": [2, 4, 2], "fins": [0, 1, 0], "tail": [1, 1, 0]},
        index=["wren", "gull", "swan"],
    )
    assert table_warnings("raw", ClassEmbeddings.from_frame(raw))
    assert table_warnings("raw", ClassEmbeddings.from_traits(raw)) == []


def test_rows_that_do_not_exist_are_somebody_else_s_matter(world):
    from latem.datasets.learnable import split_warnings

    assert split_warnings("s", Split(["a"], [], ["b"], [99]), np.array(["a", "b"])) == []
