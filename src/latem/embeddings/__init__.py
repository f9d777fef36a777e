"""The class side: descriptions of classes as vectors."""

from latem.embeddings.table import ClassEmbeddings, as_class_embeddings

__all__ = ["ClassEmbeddings", "as_class_embeddings"]
