"""Encoders for retrieval: one that needs no download, and sentence-transformers by id or path."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from schemas.errors import InputError


class HashingEncoder:
    """Encoder that hashes lines and words, without any model: two states are near if they share lines."""

    def __init__(self, num_dimensions: int = 128) -> None:
        """Create an encoder into this many dimensions."""
        from sklearn.feature_extraction.text import HashingVectorizer  # importing it takes a second

        self._num_dimensions = num_dimensions
        options: dict[str, Any] = {"analyzer": _features, "alternate_sign": True, "norm": "l2", "dtype": np.float32}
        self._vectorizer: Any = HashingVectorizer(n_features=num_dimensions, **options)

    @property
    def num_dimensions(self) -> int:
        """Length of each vector."""
        return self._num_dimensions

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors [N, num_dimensions]; an empty text gives zeros."""
        return self._vectorizer.transform(texts).toarray()


def _features(text: str) -> list[str]:
    """Return the lines of a text with several, for example a state; else the whole text and its words."""
    lines = text.split("\n")
    return lines if len(lines) > 1 else [text, *text.split()]


class SentenceEncoder:
    """Encoder that runs a sentence-transformers model (extra `embed`)."""

    def __init__(self, folder_or_id: str, revision: str | None = None) -> None:
        """Load the model from safetensors only, without remote code."""
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise InputError(
                "retrieval.encoder names a sentence-transformers model: pip install 'dreamgym[embed]'"
            ) from error
        self._model = SentenceTransformer(
            folder_or_id, revision=revision, trust_remote_code=False, model_kwargs={"use_safetensors": True}
        )

    @property
    def num_dimensions(self) -> int:
        """Length of each vector."""
        return int(self._model.get_embedding_dimension() or 0)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors [N, num_dimensions]."""
        return self._model.encode(list(texts), normalize_embeddings=True).astype(np.float32)
