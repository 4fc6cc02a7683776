"""Bytes by key as objects of a bucket in S3-compatible storage."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlparse

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.settings import Settings
from infra.storage.blobs import Blobs, Stored
from schemas.errors import StorageError

_PART_BYTES = 256 * 2**20
"""Size above which uploads are split: one request takes 5 GB at most, and the weights of a 7B model have 28 GB."""
_MADE_BEFORE = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")
_NOT_THERE = ("404", "NoSuchKey", "NotFound")
_TAKEN = ("412", "PreconditionFailed", "409", "ConditionalRequestConflict")


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
