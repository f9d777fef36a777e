"""The class side: descriptions of classes as vectors."""

from latem.embeddings.attributes import read_attributes
from latem.embeddings.hierarchy import hierarchy_embeddings
from latem.embeddings.table import ClassEmbeddings, as_class_embeddings
from latem.embeddings.text import SentenceEncoder, text_embeddings
from latem.embeddings.words import train_word_vectors, word_embeddings

__all__ = [
    "ClassEmbeddings",
    "SentenceEncoder",
    "as_class_embeddings",
    "hierarchy_embeddings",
    "read_attributes",
    "text_embeddings",
    "train_word_vectors",
    "word_embeddings",
]
