"""Content-addressed objects: a folder by default, S3-compatible storage by setting.

An object's address is its sha256, so a write can be repeated, and every read is verified.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlparse

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.settings import Settings
from schemas.errors import IntegrityError, StorageError
from schemas.records import Reference

_MODEL = "model"
"""Kind of the references that are manifests of files."""


class _Store(Protocol):
    """Where bytes lie by digest."""

    root: str

    def write(self, sha256: str, content: bytes) -> None: ...

    def read(self, sha256: str) -> bytes: ...

    def holds(self, sha256: str) -> bool: ...


class _Folder:
    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def _path(self, sha256: str) -> Path:
        return Path(self.root) / sha256[:2] / sha256

    def write(self, sha256: str, content: bytes) -> None:
        path = self._path(sha256)
        if path.exists():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, content)
        except OSError as error:
            raise StorageError(
                f"cannot write object to {path.parent}: {error.strerror}. Free space or change DREAMGYM_HOME; nothing stored was touched"
            ) from error

    def read(self, sha256: str) -> bytes:
        try:
            return self._path(sha256).read_bytes()
        except OSError as error:
            raise StorageError(
                f"object {sha256[:12]} is not in {self.root}: {error.strerror}. Was the folder moved or cleaned?"
            ) from error

    def holds(self, sha256: str) -> bool:
        return self._path(sha256).exists()


class _Bucket:
    def __init__(self, uri: str, settings: Settings) -> None:
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

    def _key(self, sha256: str) -> str:
        return f"{self._prefix}/{sha256[:2]}/{sha256}".lstrip("/")

    def write(self, sha256: str, content: bytes) -> None:
        try:
            self._client.put_object(Bucket=self._bucket, Key=self._key(sha256), Body=content)
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"cannot write object to {self.root}: {error}") from error

    def read(self, sha256: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=self._key(sha256))["Body"].read()
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"cannot read object {sha256[:12]} from {self.root}: {error}") from error

    def holds(self, sha256: str) -> bool:
        try:
            self._client.head_object(Bucket=self._bucket, Key=self._key(sha256))
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                return False
            raise StorageError(f"cannot ask {self.root} for object {sha256[:12]}: {error}") from error
        except BotoCoreError as error:
            raise StorageError(f"cannot ask {self.root} for object {sha256[:12]}: {error}") from error
        return True


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, even after a crash."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


class ObjectStore:
    """Puts and gets bytes, JSON and folders by reference."""

    def __init__(self, settings: Settings) -> None:
        """The store that the settings name."""
        uri = settings.object_store_uri
        self._store: _Store = _Bucket(uri, settings) if uri.startswith("s3://") else _Folder(Path(uri))

    def put(self, content: bytes, kind: str, **notes: float | int | str) -> Reference:
        """Store bytes; the same bytes twice are one object."""
        sha256 = hashlib.sha256(content).hexdigest()
        self._store.write(sha256, content)
        return Reference(f"{self._store.root}/{sha256[:2]}/{sha256}", sha256, kind, notes)

    def get(self, reference: Reference) -> bytes:
        """The bytes of a reference.

        Raises:
            IntegrityError: they are not what the digest says.
            StorageError: they are not there.
        """
        return self._verified(reference.sha256)

    def _verified(self, sha256: str) -> bytes:
        content = self._store.read(sha256)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise IntegrityError(
                f"object {sha256[:12]} in {self._store.root} is corrupt: its bytes do not match its name. "
                "Delete it and run again: the task that made it will make it anew"
            )
        return content

    def holds(self, reference: Reference) -> bool:
        """Whether a reference's bytes are there, and those of every file of a folder; nothing is verified."""
        if not self._store.holds(reference.sha256):
            return False
        manifest = self.get_json(reference) if reference.kind == _MODEL else {}
        return all(map(self._store.holds, manifest.values()))

    def put_json(self, value: Any, kind: str, **notes: float | int | str) -> Reference:
        """Store plain data."""
        return self.put(json.dumps(value, sort_keys=True).encode(), kind, **notes)

    def get_json(self, reference: Reference) -> Any:
        """Plain data of a reference."""
        return json.loads(self.get(reference))

    def put_folder(self, folder: Path, **notes: float | int | str) -> Reference:
        """Store every file of a model's flat folder, and a manifest of their digests, which is the reference."""
        manifest = {path.name: self.put(path.read_bytes(), "file").sha256 for path in _files(folder)}
        return self.put_json(manifest, _MODEL, **notes)

    def get_folder(self, reference: Reference, folder: Path) -> Path:
        """Write the files of a stored folder, each verified, and return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, sha256 in self.get_json(reference).items():
            if Path(name).name != name:
                raise IntegrityError(f"manifest {reference.sha256[:12]} names a file outside its folder: {name!r}")
            (folder / name).write_bytes(self._verified(sha256))
        return folder


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())
