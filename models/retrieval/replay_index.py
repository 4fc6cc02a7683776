"""Retrieval of past experience from memory (paper, section 4.1: top-k by cosine of phi(s, a)).

The vector of a transition joins the encodings of its task, its state and its action. The cosine of two
vectors is the weighted sum of the three cosines, so transitions of another episode of the same task in a
similar state come first: they show, for example, what is in the closed fridge.

Shapes: N stored transitions, Q queries, D dimensions of a joined vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import faiss
import numpy as np

from models.retrieval.demonstrations import demonstration_of
from schemas.ports import DemonstrationQuery, Encoder
from schemas.recipes.data import DemonstrationForm
from schemas.records import Trajectory, Turn

TASK_WEIGHT, STATE_WEIGHT, ACTION_WEIGHT = 0.35, 0.25, 0.4
_GRAPH_FROM = 20_000
"""Number of stored vectors from which a graph index is worth building."""
_BEAM, _BEAM_AT = 32, 100_000
"""Number of candidates in a graph search, and the number of vectors it is for; it grows with the square root of their
number. This finds nineteen of the twenty nearest among 100,000 vectors and among a million."""
_SPARE = 16
"""Number of neighbours searched beyond k, so that some can be skipped."""
_CROWD = 64
"""Factor of a wider search where too few are left: many dreams of one moment may rank before real transitions."""


@dataclass(frozen=True, slots=True)
class IndexedTransition:
    """Index entry of a stored transition."""

    trajectory_id: str
    dreamt: bool
    text: str
    """Demonstration as it is shown to the experience model."""
    task_id: str = ""

    @staticmethod
    def of(trajectory_id: str, trajectory: Trajectory, turn: Turn, form: DemonstrationForm) -> "IndexedTransition":
        """Create the entry of one transition.

        Args:
            trajectory_id: Id of the trajectory in the store.
            trajectory: Trajectory with the transition.
            turn: Turn of it.
            form: What is shown of it.
        """
        text = demonstration_of(trajectory.task, turn, form)
        return IndexedTransition(trajectory_id, trajectory.origin == "dream", text, trajectory.task.task_id)


def join(encoder: Encoder, instructions: Sequence[str], states: Sequence[str], actions: Sequence[str]) -> np.ndarray:
    """Return unit vectors [N, 3 * encoder.num_dimensions] of transitions."""
    parts = ((TASK_WEIGHT, instructions), (STATE_WEIGHT, states), (ACTION_WEIGHT, actions))
    return np.concatenate([np.sqrt(w, dtype=np.float32) * encoder.encode(texts) for w, texts in parts], axis=1)


class ReplayIndex:
    """Index of stored transitions in memory, which can be searched and extended."""

    def __init__(self, encoder: Encoder, max_dreamt_share: float = 0.5) -> None:
        """Create an empty index.

        Args:
            encoder: Encoder that produced the stored vectors.
            max_dreamt_share: Maximum share of dreamt transitions among the k of a query.
        """
        self._encoder = encoder
        self._max_dreamt_share = max_dreamt_share
        self._size = 3 * encoder.num_dimensions
        self._index: faiss.Index = faiss.IndexFlatIP(self._size)
        self._entries: list[IndexedTransition] = []

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, vectors_ND: np.ndarray, entries: Sequence[IndexedTransition]) -> None:
        """Store transitions with their vectors."""
        if len(self) < _GRAPH_FROM <= len(self) + len(entries):
            self._index = _graph_over(self._index, self._size)
        self._index.add(np.ascontiguousarray(vectors_ND, dtype=np.float32))
        self._entries += entries
        if isinstance(self._index, faiss.IndexHNSWFlat):
            self._index.hnsw.efSearch = round(_BEAM * max(1, len(self) / _BEAM_AT) ** 0.5)

    def search(self, vectors_QD: np.ndarray, k: int) -> np.ndarray:
        """Return row numbers of the k nearest vectors, [Q, k], nearest first; -1 where there are fewer."""
        return self._index.search(np.ascontiguousarray(vectors_QD, dtype=np.float32), k)[1]

    def retrieve(
        self, queries: Sequence[DemonstrationQuery], k: int, *, of_other_tasks: bool = False
    ) -> list[list[str]]:
        """Return up to k demonstrations per query, never from its own trajectory and only a limited share dreamt.

        Args:
            queries: Situations.
            k: Number of demonstrations of each.
            of_other_tasks: Leave out those of the query's own task, as if it were new.
        """
        if not self._entries or k == 0:
            return [[] for _ in queries]
        vectors = join(
            self._encoder,
            [q.task.instruction for q in queries],
            [q.state for q in queries],
            [q.action for q in queries],
        )
        found = self.search(vectors, k + _SPARE)
        chosen = [self._choose(rows, query, k, of_other_tasks) for rows, query in zip(found, queries, strict=True)]
        short = [number for number, texts in enumerate(chosen) if len(texts) < k]
        if short:
            wider = self.search(vectors[short], _CROWD * (k + _SPARE))
            for number, rows in zip(short, wider, strict=True):
                chosen[number] = self._choose(rows, queries[number], k, of_other_tasks)
        return chosen

    def _choose(self, rows: np.ndarray, query: DemonstrationQuery, k: int, of_other_tasks: bool) -> list[str]:
        chosen: list[str] = []
        dreamt_left = int(self._max_dreamt_share * k)
        for row in rows:
            if len(chosen) == k or row < 0:
                break
            entry = self._entries[row]
            if entry.trajectory_id == query.trajectory_id or (entry.dreamt and dreamt_left == 0):
                continue
            if of_other_tasks and entry.task_id == query.task.task_id:
                continue
            dreamt_left -= entry.dreamt
            chosen.append(entry.text)
        return chosen


def _graph_over(flat: faiss.Index, size: int) -> faiss.Index:
    graph = faiss.IndexHNSWFlat(size, 32, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 80
    if flat.ntotal:
        graph.add(flat.reconstruct_n(0, flat.ntotal))
    return graph
