"""Bytes by key: read, write, and create unless the key exists. In a folder, or in a bucket (`buckets`)."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from infra.files.durable_files import create_durably, move_durably, write_durably
from infra.settings import Settings
from schemas.errors import StorageError

_NUM_RACERS = 8


@dataclass(frozen=True, slots=True)
class Stored:
    """Key, size and time of stored bytes, known without reading them."""

    key: str
    num_bytes: int
    written: float
    """Time of the last write in seconds since the epoch, by the store's clock."""


class Blobs(Protocol):
    """Store of bytes by key."""

    root: str

    def write(self, key: str, content: bytes) -> None:
        """Write or replace the bytes of a key."""
        ...

    def create(self, key: str, content: bytes) -> bool:
        """Create a key atomically; return False if it exists. At most one of several callers succeeds."""
        ...

    def read(self, key: str) -> bytes:
        """Return the bytes of a key.

        Raises:
            StorageError: the key does not exist, or cannot be read.
        """
        ...

    def write_file(self, key: str, file: Path) -> None:
        """Write or replace the bytes of a key with those of a file, which is removed; they need not fit into memory."""
        ...

    def read_file(self, key: str, file: Path) -> None:
        """Write the bytes of a key into a file; they need not fit into memory.

        Raises:
            StorageError: the key does not exist, or cannot be read, or the file cannot be written.
        """
        ...

    def holds(self, key: str) -> bool:
        """Return True if a key exists."""
        ...

    def listed(self, prefix: str) -> list[Stored]:
        """Return everything whose key starts with a prefix, sorted by key."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """Return all keys that start with a prefix, sorted."""
        return [one.key for one in self.listed(prefix)]

    def delete(self, key: str) -> None:
        """Delete a key if it exists."""
        ...


def open_blobs(settings: Settings) -> Blobs:
    """Return the object store that the settings name."""
    return blobs_at(settings.object_store_uri, settings)


def blobs_at(uri: str, settings: Settings) -> Blobs:
    """Return the store at a URI; the settings contain the credentials for buckets."""
    if not uri.startswith("s3://"):
        return FolderBlobs(Path(uri))
    from infra.storage.buckets import BucketBlobs  # the client takes most of a second to import

    return BucketBlobs(uri, settings)


class FolderBlobs(Blobs):
    """Store of bytes as files under a folder."""

    def __init__(self, root: Path) -> None:
        """Use a folder, which is created at the first write."""
        self.root = str(root)

    def _path(self, key: str) -> Path:
        return Path(self.root) / key

    def write(self, key: str, content: bytes) -> None:
        """Write or replace the bytes of a key."""
        try:
            write_durably(self._ready(key), content)
        except OSError as error:
            raise self._unwritable(key, error) from error

    def write_file(self, key: str, file: Path) -> None:
        """Move a file to a key."""
        try:
            move_durably(file, self._ready(key))
        except OSError as error:
            raise self._unwritable(key, error) from error

    def create(self, key: str, content: bytes) -> bool:
        """Create a key atomically; return False if it exists."""
        try:
            return create_durably(self._ready(key), content)
        except OSError as error:
            raise self._unwritable(key, error) from error

    def _ready(self, key: str) -> Path:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _unwritable(self, key: str, error: OSError) -> StorageError:
        return StorageError(
            f"cannot write object to {self._path(key).parent}: {error.strerror}. Free space or fix permissions, or change DREAMGYM_HOME; "
            "nothing stored was touched"
        )

    def read(self, key: str) -> bytes:
        """Return the bytes of a key."""
        try:
            return self._path(key).read_bytes()
        except OSError as error:
            raise StorageError(
                f"object {key} is not in {self.root}: {error.strerror}. Was the folder moved or cleaned?"
            ) from error

    def read_file(self, key: str, file: Path) -> None:
        """Copy the bytes of a key into a file."""
        try:
            shutil.copyfile(self._path(key), file)
        except OSError as error:
            raise StorageError(
                f"cannot copy object {key} from {self.root} to {file.parent}: {error.strerror}. Was the folder moved or "
                "cleaned, or is the disk full?"
            ) from error

    def holds(self, key: str) -> bool:
        """Return True if a key exists."""
        return self._path(key).exists()

    def listed(self, prefix: str) -> list[Stored]:
        """Return everything whose key starts with a prefix, sorted by key."""
        root, folder = Path(self.root), self._path(prefix)
        whole_folder = not prefix or prefix.endswith("/")
        found = folder.rglob("*") if whole_folder else folder.parent.glob(f"{folder.name}*")
        files = sorted(p for p in found if p.is_file() and not p.name.startswith("."))
        return [Stored(str(p.relative_to(root)), p.stat().st_size, p.stat().st_mtime) for p in files]

    def delete(self, key: str) -> None:
        """Delete a key if it exists."""
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot delete {key} from {self.root}: {error.strerror}") from error


def require_conditional_puts(blobs: Blobs, num_races: int = 2) -> None:
    """Check that the store creates a key only once, also when eight threads try at the same moment.

    A store that accepts a second creation loses rows, leases and promotions without an error. A store that checks first
    and writes afterwards passes a sequential test, so the check is a race.

    Raises:
        StorageError: the store creates a key twice, and must not be used.
    """
    folder = f"probe/{uuid4().hex}"
    keys = [f"{folder}/{number}" for number in range(num_races + 1)]
    try:
        winners = [blobs.create(keys[0], b"first") + blobs.create(keys[0], b"second")]
        with ThreadPoolExecutor(_NUM_RACERS) as racers:
            for key in keys[1:]:
                asked = [racers.submit(blobs.create, key, str(racer).encode()) for racer in range(_NUM_RACERS)]
                winners.append(sum(one.result() for one in asked))
    finally:
        for key in keys:
            blobs.delete(key)
    if winners != [1] * len(winners):
        raise StorageError(
            f"{blobs.root} ignores conditional puts: of several that create one key, {max(winners)} believe that they "
            "did. Rows and promotions would be lost there; use a store that honours If-None-Match"
        )
