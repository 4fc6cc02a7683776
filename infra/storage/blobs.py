"""Bytes by key, in a folder or in S3-compatible storage: read, write, and create where nothing is."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlparse
from uuid import uuid4

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.files.durable_files import create_durably, write_durably
from infra.settings import Settings
from schemas.errors import StorageError

_NUM_RACERS = 8
_PART_BYTES = 256 * 2**20
"""What is larger is sent in parts: one request carries 5 GB at most, and weights of a 7B model are 28."""
_NOT_THERE = ("404", "NoSuchKey", "NotFound")
_TAKEN = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of something stored without reading it."""

    key: str
    num_bytes: int
    written: float
    """Seconds since the epoch, by the store's clock."""


class Blobs(Protocol):
    """Where bytes lie by key."""

    root: str

    def write(self, key: str, content: bytes) -> None:
        """Write or replace."""
        ...

    def create(self, key: str, content: bytes) -> bool:
        """Write what nobody has written before, as one step; False if somebody has. Sure to win at most once."""
        ...

    def read(self, key: str) -> bytes:
        """What lies at a key.

        Raises:
            StorageError: nothing lies there, or it cannot be read.
        """
        ...

    def holds(self, key: str) -> bool:
        """Whether something lies at a key."""
        ...

    def listed(self, prefix: str) -> list[Stored]:
        """Everything whose key begins so, in the order of keys."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """All keys that begin so, in order."""
        ...

    def delete(self, key: str) -> None:
        """Take away what lies at a key, if anything does."""
        ...


def open_blobs(settings: Settings) -> Blobs:
    """The object store that the settings name."""
    return blobs_at(settings.object_store_uri, settings)


def blobs_at(uri: str, settings: Settings) -> Blobs:
    """What lies under a URI; the settings hold the keys of buckets."""
    return BucketBlobs(uri, settings) if uri.startswith("s3://") else FolderBlobs(Path(uri))


class FolderBlobs:
    """Files under a folder."""

    def __init__(self, root: Path) -> None:
        """The folder is made when something is written."""
        self.root = str(root)

    def _path(self, key: str) -> Path:
        return Path(self.root) / key

    def write(self, key: str, content: bytes) -> None:
        """Write or replace."""
        try:
            write_durably(self._ready(key), content)
        except OSError as error:
            raise self._unwritable(key, error) from error

    def create(self, key: str, content: bytes) -> bool:
        """Write what nobody has written before."""
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
        """What lies at a key."""
        try:
            return self._path(key).read_bytes()
        except OSError as error:
            raise StorageError(
                f"object {key} is not in {self.root}: {error.strerror}. Was the folder moved or cleaned?"
            ) from error

    def holds(self, key: str) -> bool:
        """Whether something lies at a key."""
        return self._path(key).exists()

    def listed(self, prefix: str) -> list[Stored]:
        """Everything whose key begins so, in the order of keys."""
        root, folder = Path(self.root), self._path(prefix)
        whole_folder = not prefix or prefix.endswith("/")
        found = folder.rglob("*") if whole_folder else folder.parent.glob(f"{folder.name}*")
        files = sorted(p for p in found if p.is_file() and not p.name.startswith("."))
        return [Stored(str(p.relative_to(root)), p.stat().st_size, p.stat().st_mtime) for p in files]

    def keys(self, prefix: str) -> list[str]:
        """All keys that begin so, in order."""
        return [one.key for one in self.listed(prefix)]

    def delete(self, key: str) -> None:
        """Take away what lies at a key."""
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot delete {key} from {self.root}: {error.strerror}") from error


class BucketBlobs:
    """Objects of a bucket, under a prefix."""

    def __init__(self, uri: str, settings: Settings) -> None:
        """The bucket has to exist."""
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
        """Make the bucket if it is not there."""
        try:
            self._client.create_bucket(Bucket=self._bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                raise StorageError(f"cannot make bucket {self._bucket}: {error}") from error
        except BotoCoreError as error:
            raise StorageError(f"cannot make bucket {self._bucket}: {error}") from error

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._prefix}/{key}".lstrip("/")}

    def write(self, key: str, content: bytes) -> None:
        """Write or replace."""
        try:
            if len(content) > _PART_BYTES:
                in_parts = TransferConfig(multipart_threshold=_PART_BYTES, multipart_chunksize=_PART_BYTES)
                self._client.upload_fileobj(BytesIO(content), **self._at(key), Config=in_parts)
            else:
                self._client.put_object(**self._at(key), Body=content)
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"cannot write object to {self.root}: {error}") from error

    def create(self, key: str, content: bytes) -> bool:
        """Write what nobody has written before, by a conditional put.

        An attempt may be applied while its answer is lost; the next one then meets what we wrote ourselves.
        """
        try:
            self._client.put_object(**self._at(key), Body=content, IfNoneMatch="*")
        except ClientError as error:
            if error.response["Error"]["Code"] not in _TAKEN:
                raise StorageError(f"cannot create object in {self.root}: {error}") from error
            return self.holds(key) and self.read(key) == content
        except BotoCoreError as error:
            raise StorageError(f"cannot create object in {self.root}: {error}") from error
        return True

    def read(self, key: str) -> bytes:
        """What lies at a key."""
        try:
            return self._client.get_object(**self._at(key))["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"cannot read object {key} from {self.root}: {error}") from error

    def holds(self, key: str) -> bool:
        """Whether something lies at a key."""
        try:
            self._client.head_object(**self._at(key))
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return False
            raise StorageError(f"cannot ask {self.root} for object {key}: {error}") from error
        except BotoCoreError as error:
            raise StorageError(f"cannot ask {self.root} for object {key}: {error}") from error
        return True

    def listed(self, prefix: str) -> list[Stored]:
        """Everything whose key begins so, in the order of keys."""
        at = self._at(prefix)
        try:
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=at["Bucket"], Prefix=at["Key"])
            found = [one for page in pages for one in page.get("Contents", ())]
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"cannot list {self.root}/{prefix}: {error}") from error
        return [
            Stored(one["Key"][len(self._prefix) :].lstrip("/"), one["Size"], one["LastModified"].timestamp())
            for one in sorted(found, key=lambda one: one["Key"])
        ]

    def keys(self, prefix: str) -> list[str]:
        """All keys that begin so, in order."""
        return [one.key for one in self.listed(prefix)]

    def delete(self, key: str) -> None:
        """Take away what lies at a key."""
        try:
            self._client.delete_object(**self._at(key))
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"cannot delete {key} from {self.root}: {error}") from error


def require_conditional_puts(blobs: Blobs, num_races: int = 2) -> None:
    """Raise unless the store creates a key once, also when eight ask at the same moment.

    A store that accepts a second creation loses rows, leases and promotions without an error; one that checks first
    and writes then passes when it is asked in turn, which is why it is raced.

    Raises:
        StorageError: it does not, and must not be used.
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
            f"{blobs.root} ignores conditional puts: of several that create one key, {max(winners)} are told that they "
            "did. Rows and promotions would be lost there; use a store that honours If-None-Match"
        )
