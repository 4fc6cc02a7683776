"""Bytes by key, in a folder or in S3-compatible storage: read, write, and create unless the key exists."""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import urlparse
from uuid import uuid4

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.files.durable_files import create_durably, move_durably, write_durably
from infra.settings import Settings
from schemas.errors import StorageError

_NUM_RACERS = 8
_PART_BYTES = 256 * 2**20
"""Size above which uploads are split: one request takes 5 GB at most, and the weights of a 7B model have 28 GB."""
_MADE_BEFORE = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")
_NOT_THERE = ("404", "NoSuchKey", "NotFound")
_TAKEN = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")


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
    return BucketBlobs(uri, settings) if uri.startswith("s3://") else FolderBlobs(Path(uri))


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


class BucketBlobs(Blobs):
    """Store of bytes as objects of a bucket, under a prefix."""

    def __init__(self, uri: str, settings: Settings) -> None:
        """Use an existing bucket."""
        self.root = uri.rstrip("/")
        parsed = urlparse(uri)
        self._bucket, self._prefix = parsed.netloc, parsed.path.strip("/")
        keys = (settings.s3_access_key, settings.s3_secret_key)
        access, secret = (key.get_secret_value() if key else None for key in keys)
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=settings.s3_endpoint,
            aws_access_key_id=access,
            aws_secret_access_key=secret,
            config=Config(retries={"max_attempts": 6, "mode": "adaptive"}, connect_timeout=5, read_timeout=60),
        )

    def ensure_bucket(self) -> None:
        """Create the bucket if it does not exist."""
        with _errors_explained(f"make bucket {self._bucket}"), _expected(_MADE_BEFORE):
            self._client.create_bucket(Bucket=self._bucket)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}/{key}".lstrip("/")}

    def write(self, key: str, content: bytes) -> None:
        """Write or replace the bytes of a key."""
        with _errors_explained(f"write object to {self.root}"):
            if len(content) > _PART_BYTES:
                self._upload(key, BytesIO(content))
            else:
                self._client.put_object(**self._at(key), Body=content)

    def write_file(self, key: str, file: Path) -> None:
        """Upload a file, in parts if it is large."""
        with _errors_explained(f"write object to {self.root}"), file.open("rb") as content:
            self._upload(key, content)
        file.unlink()

    def _upload(self, key: str, content: BinaryIO) -> None:
        in_parts = TransferConfig(multipart_threshold=_PART_BYTES, multipart_chunksize=_PART_BYTES)
        self._client.upload_fileobj(content, **self._at(key), Config=in_parts)

    def create(self, key: str, content: bytes) -> bool:
        """Create a key atomically with a conditional put; return False if it exists.

        A put may succeed while its answer is lost; the retry then finds our own content, which counts as success.
        """
        with _errors_explained(f"create object in {self.root}"), _expected(_TAKEN):
            self._client.put_object(**self._at(key), Body=content, IfNoneMatch="*")
            return True
        return self.holds(key) and self.read(key) == content

    def read(self, key: str) -> bytes:
        """Return the bytes of a key."""
        with _errors_explained(f"read object {key} from {self.root}"):
            return self._client.get_object(**self._at(key))["Body"].read()

    def read_file(self, key: str, file: Path) -> None:
        """Download the bytes of a key into a file."""
        with _errors_explained(f"read object {key} from {self.root}"), file.open("wb") as content:
            self._client.download_fileobj(**self._at(key), Fileobj=content)

    def holds(self, key: str) -> bool:
        """Return True if a key exists."""
        with _errors_explained(f"ask {self.root} for object {key}"), _expected(_NOT_THERE):
            self._client.head_object(**self._at(key))
            return True
        return False

    def listed(self, prefix: str) -> list[Stored]:
        """Return everything whose key starts with a prefix, sorted by key."""
        at = self._at(prefix)
        with _errors_explained(f"list {self.root}/{prefix}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=at["Bucket"], Prefix=at["Key"])
            found = [one for page in pages for one in page.get("Contents", ())]
        return [
            Stored(one["Key"][len(self._prefix) :].lstrip("/"), one["Size"], one["LastModified"].timestamp())
            for one in sorted(found, key=lambda one: one["Key"])
        ]

    def delete(self, key: str) -> None:
        """Delete a key if it exists."""
        with _errors_explained(f"delete {key} from {self.root}"):
            self._client.delete_object(**self._at(key))


@contextmanager
def _errors_explained(task: str) -> Iterator[None]:
    """Turn the client's errors into StorageError."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StorageError(f"cannot {task}: {error}") from error


@contextmanager
def _expected(codes: Sequence[str]) -> Iterator[None]:
    """End the block without an error where the server answers with one of these codes."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


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
