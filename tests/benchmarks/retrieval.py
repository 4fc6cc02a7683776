"""Queries per second for the five nearest vectors, one at a time, while another thread stores more."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Event, Lock, Thread
from typing import Any

import numpy as np

SIZE, NUM_QUERIES = 384, 50
_ROWS_AT_ONCE, _PAUSE_S = 64, 0.05
_MIN_RECALL = 0.95
_WIDTHS = (16, 24, 32, 48, 64, 96, 128, 192, 256)
_SMALL, _LARGE = 100_000, 1_000_000


def ours() -> list[float]:
    """Measure our index with 100,000 vectors."""
    return _ours(_SMALL)


def ours_large() -> list[float]:
    """Measure our index with a million vectors."""
    return _ours(_LARGE)


def lancedb() -> list[float]:
    """Measure LanceDB's brute force with 100,000 vectors."""
    return _lancedb(_SMALL)


def lancedb_large() -> list[float]:
    """Measure LanceDB's brute force with a million vectors."""
    return _lancedb(_LARGE)


def faiss() -> list[float]:
    """Measure FAISS HNSW with 100,000 vectors."""
    return _faiss(_SMALL)


def faiss_large() -> list[float]:
    """Measure FAISS HNSW with a million vectors."""
    return _faiss(_LARGE)


def vectors(count: int, seed: int = 0) -> np.ndarray:
    """Return clustered unit vectors, as states of tasks are."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(2_000, SIZE)).astype(np.float32)
    raw = centres[rng.integers(0, 2_000, count)] + 0.5 * rng.standard_normal((count, SIZE), dtype=np.float32)
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def queries_near(stored: np.ndarray) -> np.ndarray:
    """Return vectors near stored ones, none of them stored."""
    rng = np.random.default_rng(1)
    noisy = stored[:NUM_QUERIES] + rng.normal(scale=0.2 / np.sqrt(SIZE), size=(NUM_QUERIES, SIZE))
    return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)


def _ours(count: int) -> list[float]:
    from models.retrieval.encoders import HashingEncoder
    from models.retrieval.replay_index import IndexedTransition, ReplayIndex

    stored = vectors(count)
    index, entry = ReplayIndex(HashingEncoder()), IndexedTransition("", False, "")
    index.add(stored, [entry] * count)
    recall = _recall(stored, lambda queries: index.search(queries, 5))
    sys.stderr.write(f"recall@5 of ours at {count:,}: {recall:.3f}\n")
    if recall < _MIN_RECALL:
        raise SystemExit(f"recall@5 is below its floor of {_MIN_RECALL}")
    return _measured(stored, lambda q: index.search(q[None], 5), lambda rows: index.add(rows, [entry] * len(rows)))


def _faiss(count: int) -> list[float]:
    """Measure FAISS with its defaults, except a search just wide enough for our minimum recall."""
    import faiss

    stored = vectors(count)
    index = faiss.IndexHNSWFlat(SIZE, 32, faiss.METRIC_INNER_PRODUCT)
    index.add(stored)
    for width in _WIDTHS:
        index.hnsw.efSearch = width
        if _recall(stored, lambda queries: index.search(queries, 5)[1]) >= _MIN_RECALL:
            break
    return _measured(stored, lambda q: index.search(q[None], 5), index.add)


def _lancedb(count: int) -> list[float]:
    import lancedb

    stored = vectors(count)
    table = lancedb.connect(tempfile.mkdtemp()).create_table("t", _arrow(stored))
    return _measured(
        stored,
        lambda q: table.search(q).metric("cosine").limit(5).to_arrow(),
        lambda rows: table.add(_arrow(rows)),
        nullcontext(),  # LanceDB needs no lock
    )


def _arrow(rows: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), SIZE)})


def _recall(stored: np.ndarray, search: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the share of the five nearest that are found."""
    queries = queries_near(stored)
    exact = np.argsort(-queries @ stored.T, axis=1)[:, :5]
    return float(np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, search(queries), strict=True)]))


def _measured(
    stored: np.ndarray,
    search: Callable[[np.ndarray], object],
    add: Callable[[np.ndarray], object],
    lock: AbstractContextManager[object] | None = None,
) -> list[float]:
    """Return one over the median time of a query, five times; a query waits for a write if a lock is needed."""
    queries, alone = queries_near(stored), lock or Lock()

    def seconds(query: np.ndarray) -> float:
        started = time.perf_counter()
        with alone:
            search(query)
        return time.perf_counter() - started

    with _writing(add, alone):
        seconds(queries[0])
        return [1 / float(np.median([seconds(query) for query in queries])) for _ in range(5)]


@contextmanager
def _writing(add: Callable[[np.ndarray], object], alone: AbstractContextManager[object]) -> Iterator[None]:
    rows, done = vectors(_ROWS_AT_ONCE, seed=7), Event()

    def until_done() -> None:
        while not done.wait(_PAUSE_S):
            with alone:
                add(rows)

    writer = Thread(target=until_done)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()
