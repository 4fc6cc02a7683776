"""Writes in the background: a round is played while the policy that plays it is still being stored."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType

from infra.storage.blobs import Blobs, Stored
from schemas.errors import StorageError

_MAX_WAITING = 4 * 2**30
"""Number of bytes that may wait in memory; a write beyond it waits for those before it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """Change of a key that is still to come."""

    key: str
    content: bytes | None
    """Bytes to write; None: delete the key."""


class BackgroundBlobs(Blobs):
    """Store that writes and deletes in a thread, in order, while it is open as a context manager; else at once.

    What waits to be written is read from memory. A process that dies loses the last changes and none before them, so a
    result is never there without the objects that it names. After a change that failed no other is made, and every call
    raises its error until the block ends.
    """

    def __init__(self, blobs: Blobs) -> None:
        """Write to `blobs`."""
        self.root, self._blobs = blobs.root, blobs
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None
        self._waiting: dict[str, _Change] = {}
        """Last change of each key."""
        self._failure: Exception | None = None

    def __enter__(self) -> "BackgroundBlobs":
        """Write in the background from now on."""
        self._thread = ThreadPoolExecutor(1, "writes")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Write what is left.

        Raises:
            StorageError: a change failed; not if the block ended with an error, which matters more.
        """
        thread, self._thread = self._thread, None
        if thread:
            thread.shutdown()
        try:
            if error is None:
                self._require_success()
        finally:
            self._failure = None
            self._waiting.clear()

    def write(self, key: str, content: bytes) -> None:
        """Write or replace the bytes of a key."""
        if self._num_waiting() + len(content) > _MAX_WAITING:
            self.finish()
        self._change(_Change(key, content))

    def delete(self, key: str) -> None:
        """Delete a key if it exists."""
        self._change(_Change(key, None))

    def create(self, key: str, content: bytes) -> bool:
        """Create a key atomically, after all changes that wait; return False if it exists."""
        self.finish()
        return self._blobs.create(key, content)

    def read(self, key: str) -> bytes:
        """Return the bytes of a key."""
        change = self._next(key)
        if change and change.content is not None:
            return change.content
        if change:
            self.finish()
        return self._blobs.read(key)

    def holds(self, key: str) -> bool:
        """Return True if a key exists, or will when all changes are made."""
        change = self._next(key)
        return change.content is not None if change else self._blobs.holds(key)

    def listed(self, prefix: str) -> list[Stored]:
        """Return everything whose key starts with a prefix, after all changes that wait."""
        self.finish()
        return self._blobs.listed(prefix)

    def finish(self) -> None:
        """Wait until all changes are made: before another process reads.

        Raises:
            StorageError: a change failed.
        """
        if self._last:
            self._last.result()
        self._require_success()

    def _next(self, key: str) -> _Change | None:
        self._require_success()
        with self._lock:
            return self._waiting.get(key)

    def _change(self, change: _Change) -> None:
        self._require_success()
        if not self._thread:
            self._make(change)
            return
        with self._lock:
            self._waiting[change.key] = change
            self._last = self._thread.submit(self._make_next, change)

    def _make_next(self, change: _Change) -> None:
        """Make the next change, unless one before it failed."""
        if self._failure:
            return
        try:
            self._make(change)
        except Exception as error:  # raised by the next call
            self._failure = error
            return
        with self._lock:
            if self._waiting.get(change.key) is change:
                del self._waiting[change.key]

    def _make(self, change: _Change) -> None:
        if change.content is None:
            self._blobs.delete(change.key)
        else:
            self._blobs.write(change.key, change.content)

    def _num_waiting(self) -> int:
        with self._lock:
            return sum(len(change.content or b"") for change in self._waiting.values())

    def _require_success(self) -> None:
        if self._failure:
            raise StorageError(f"{self._failure}") from self._failure
