"""Retrieval index that grounds the experience model: real transitions, and the dreamt ones of past rounds."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from infra.context import run_context
from models.retrieval.encoders import HashingEncoder, SentenceEncoder
from models.retrieval.replay_index import IndexedTransition, ReplayIndex, join
from schemas.ports import Encoder
from schemas.recipes.data import RetrievalRecipe
from schemas.records import Reference, Trajectory, Turn
from tasks.data.rows import trajectory_id
from tasks.running.artifacts import get_trajectories


@lru_cache
def encoder_of(name: str, revision: str | None) -> Encoder:
    """Return the encoder that a recipe names."""
    return HashingEncoder() if name == "hashing" else SentenceEncoder(name, revision)


_kept: dict[RetrievalRecipe, tuple[ReplayIndex, tuple[str, ...]]] = {}


def index_over(retrieval: RetrievalRecipe, references: Sequence[Reference]) -> ReplayIndex:
    """Return an index over the trajectories of these references, in order.

    The last index of this process is cached. It is only extended if the new references continue the old ones, as they
    do from round to round.
    """
    digests = tuple(reference.sha256 for reference in references)
    index, held = _kept.get(retrieval, (None, ()))
    if index is None or digests[: len(held)] != held:
        index, held = ReplayIndex(encoder_of(retrieval.encoder, retrieval.revision), retrieval.max_dreamt_share), ()
    with run_context().display.timed("retrieval index"):
        for reference in references[len(held) :]:
            _add(index, get_trajectories(reference), retrieval)
    _kept.clear()
    _kept[retrieval] = (index, digests)
    return index


def _add(index: ReplayIndex, trajectories: Sequence[Trajectory], retrieval: RetrievalRecipe) -> None:
    """Add the complete trajectories to an index; failed ones are never shown."""
    whole = list({trajectory_id(t): t for t in trajectories if not t.failure}.items())
    turns = [(name, t, turn) for name, t in whole for turn in t.turns]
    if not turns:
        return
    encoder = encoder_of(retrieval.encoder, retrieval.revision)
    vectors = vectors_of([(t, turn) for _, t, turn in turns], encoder)
    index.add(vectors, [IndexedTransition.of(name, t, turn, retrieval.demonstrations) for name, t, turn in turns])


def vectors_of(turns: Sequence[tuple[Trajectory, Turn]], encoder: Encoder) -> np.ndarray:
    """Return the vectors of transitions, [N, 3 * encoder.num_dimensions]."""
    return join(
        encoder,
        [one.task.instruction for one, _ in turns],
        [turn.state for _, turn in turns],
        [turn.action for _, turn in turns],
    )
