"""Encoders for retrieval: one that needs no download, and sentence-transformers by id or path."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from schemas.errors import InputError


class HashingEncoder:
    """Hashed lines and words, without any model: two states are near if they share lines."""

    def __init__(self, num_dimensions: int = 128) -> None:
        """An encoder into this many dimensions."""
        self._num_dimensions = num_dimensions
        options: dict[str, Any] = {"analyzer": _features, "alternate_sign": True, "norm": "l2", "dtype": np.float32}
        self._vectorizer: Any = HashingVectorizer(n_features=num_dimensions, **options)

    @property
    def num_dimensions(self) -> int:
        """Length of each vector."""
        return self._num_dimensions

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors [N, num_dimensions]; an empty text gives zeros."""
        return self._vectorizer.transform(texts).toarray()


def _features(text: str) -> list[str]:
    """Whole lines of a state; words and the whole of anything shorter."""
    lines = text.split("\n")
    return lines if len(lines) > 1 else [text, *text.split()]


class SentenceEncoder:
    """A sentence-transformers model (extra `embed`)."""

    def __init__(self, folder_or_id: str, revision: str | None = None) -> None:
        """Load the model; safetensors only, no remote code."""
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
        """Unit vectors [N, num_dimensions]."""
        return self._model.encode(list(texts), normalize_embeddings=True).astype(np.float32)
