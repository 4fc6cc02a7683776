"""Writes in the background: a round is played while the policy that plays it is still being stored."""

import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from infra.files.scratch_folder import scratch_folder
from infra.storage.blobs import Blobs, Stored
from schemas.errors import StorageError

_MAX_WAITING = 4 * 2**30
"""Number of bytes that may wait, in memory or in files; a write beyond it waits for those before it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """Change of a key that is still to come."""

    key: str
    content: bytes | Path | None
    """Bytes to write, or a file with them; None: delete the key."""
    num_bytes: int = 0


class BackgroundBlobs(Blobs):
    """Store that writes and deletes in a thread, in order, while it is open as a context manager; else at once.

    What waits to be written is read where it waits: bytes in memory, files in a temporary folder. A process that dies
    loses the last changes and none before them, so a result is never there without the objects that it names. After a
    change that failed no other is made, and every call raises its error until the block ends.
    """

    def __init__(self, blobs: Blobs) -> None:
        """Write to `blobs`."""
        self.root, self._blobs = blobs.root, blobs
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._block = ExitStack()
        self._files = Path()
        """Folder in which files wait, while the block is open."""
        self._last: Future[None] | None = None
        self._waiting: dict[str, _Change] = {}
        """Last change of each key."""
        self._failure: Exception | None = None

    def __enter__(self) -> "BackgroundBlobs":
        """Write in the background from now on."""
        self._files = self._block.enter_context(scratch_folder("writes"))
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
            self._block.close()

    def write(self, key: str, content: bytes) -> None:
        """Write or replace the bytes of a key."""
        self._change(_Change(key, content, len(content)))

    def write_file(self, key: str, file: Path) -> None:
        """Move a file to where it waits, and then to a key."""
        self._require_success()
        if self._thread:
            file = Path(shutil.move(file, self._files / uuid4().hex))
        self._change(_Change(key, file, file.stat().st_size))

    def delete(self, key: str) -> None:
        """Delete a key if it exists."""
        self._change(_Change(key, None))

    def create(self, key: str, content: bytes) -> bool:
        """Create a key atomically, after all changes that wait; return False if it exists."""
        self.finish()
        return self._blobs.create(key, content)

    def read(self, key: str) -> bytes:
        """Return the bytes of a key."""
        content = self._content(key)
        if isinstance(content, Path):
            with suppress(FileNotFoundError):  # it is stored by now
                return content.read_bytes()
        return content if isinstance(content, bytes) else self._blobs.read(key)

    def read_file(self, key: str, file: Path) -> None:
        """Write the bytes of a key into a file."""
        content = self._content(key)
        if isinstance(content, Path):
            with suppress(FileNotFoundError):  # it is stored by now
                shutil.copyfile(content, file)
                return
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            self._blobs.read_file(key, file)

    def _content(self, key: str) -> bytes | Path | None:
        """Return what waits to be written to a key; None if it is stored, or deleted by now."""
        change = self._next(key)
        if change and change.content is None:
            self.finish()
        return change.content if change else None

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
        if self._num_waiting() + change.num_bytes > _MAX_WAITING:
            self.finish()
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
        elif isinstance(change.content, Path):
            self._blobs.write_file(change.key, change.content)
        else:
            self._blobs.write(change.key, change.content)

    def _num_waiting(self) -> int:
        with self._lock:
            return sum(change.num_bytes for change in self._waiting.values())

    def _require_success(self) -> None:
        if self._failure:
            raise StorageError(f"{self._failure}") from self._failure
