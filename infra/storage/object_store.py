"""Content-addressed objects.

An object's address is its sha256, so writes can be repeated and every read is verified.
"""

import hashlib
import json
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infra.files.digests import sha256_of
from infra.storage.blobs import Blobs
from schemas.errors import IntegrityError, RemovedError, StorageError
from schemas.records import Reference

_NUM_AT_ONCE = 4
"""Number of a folder's files that are read or written in parallel."""
REMOVED = "removed/"
"""Prefix of the marks of objects that were removed to save space."""
_MODEL = "model"
"""Kind of references that point at a manifest of files."""


class ObjectStore:
    """Store of bytes, JSON and folders by reference."""

    def __init__(self, blobs: Blobs) -> None:
        """Store objects in `blobs`."""
        self._blobs = blobs
        self._written: set[str] = set()

    def begin_run(self) -> None:
        """Forget what was written so far: a run removes only what it wrote itself."""
        self._written.clear()

    def put(self, content: bytes, kind: str, **notes: float | int | str) -> Reference:
        """Store bytes; the same bytes twice are one object."""
        sha256 = hashlib.sha256(content).hexdigest()
        key = _key(sha256)
        if not self._blobs.holds(key):
            self._blobs.write(key, content)
            self._written.add(sha256)
        return Reference(f"{self._blobs.root}/{key}", sha256, kind, notes)

    def get(self, reference: Reference) -> bytes:
        """Return the bytes of a reference.

        Raises:
            IntegrityError: the bytes do not match the digest.
            StorageError: the object does not exist; RemovedError if it was removed to save space.
        """
        return self._verified(reference.sha256)

    def _verified(self, sha256: str) -> bytes:
        with self._removal_explained(sha256):
            content = self._blobs.read(_key(sha256))
        self._require(hashlib.sha256(content).hexdigest(), sha256)
        return content

    def _require(self, found: str, sha256: str) -> None:
        if found != sha256:
            raise IntegrityError(
                f"object {sha256[:12]} in {self._blobs.root} is corrupt: its bytes do not match its name. "
                "Delete it and run again: the task that produced it will run again"
            )

    @contextmanager
    def _removal_explained(self, sha256: str) -> Iterator[None]:
        try:
            yield
        except StorageError as error:
            if not self._blobs.holds(REMOVED + sha256):
                raise
            raise RemovedError(f"object {sha256[:12]} was removed from {self._blobs.root} to save space") from error

    def verify(self, reference: Reference) -> None:
        """Read every byte of a reference and compare it with its digest.

        Raises:
            IntegrityError: an object does not match its digest.
            StorageError: an object does not exist.
        """
        content = self.get(reference)
        for sha256 in json.loads(content).values() if reference.kind == _MODEL else ():
            self._verified(sha256)

    def holds(self, reference: Reference, *, or_removed: bool = False) -> bool:
        """Return True if a reference's object, and every file of a folder, exists; only the manifest is verified.

        Args:
            reference: Reference of an object or a folder.
            or_removed: Count files that were removed to save space as existing.
        """
        if not self._blobs.holds(_key(reference.sha256)):
            return False
        manifest = self.get_json(reference) if reference.kind == _MODEL else {}
        return all(
            self._blobs.holds(_key(sha256)) or (or_removed and self._blobs.holds(REMOVED + sha256))
            for sha256 in manifest.values()
        )

    def put_json(self, value: Any, kind: str, **notes: float | int | str) -> Reference:
        """Store a JSON value."""
        return self.put(json.dumps(value, sort_keys=True).encode(), kind, **notes)

    def get_json(self, reference: Reference) -> Any:
        """Return the JSON value of a reference."""
        return json.loads(self.get(reference))

    def put_folder(self, folder: Path, over: Reference | None = None, **notes: float | int | str) -> Reference:
        """Move every file of a model's flat folder here; return a reference to the manifest of their digests.

        Args:
            folder: Folder of the files; what is already stored stays in it.
            over: Stored folder whose other files are included in the manifest.
            notes: Notes of the reference.
        """
        files = sorted(path for path in folder.iterdir() if path.is_file())
        with ThreadPoolExecutor(_NUM_AT_ONCE) as several:
            manifest = dict(zip((file.name for file in files), several.map(self._put_file, files), strict=True))
        beneath = self.get_json(over) if over else {}
        return self.put_json(beneath | manifest, _MODEL, **notes)

    def _put_file(self, file: Path) -> str:
        sha256 = sha256_of(file)
        key = _key(sha256)
        if not self._blobs.holds(key):
            self._blobs.write_file(key, file)
            self._written.add(sha256)
        return sha256

    def get_folder(self, reference: Reference, folder: Path, but: Container[str] = ()) -> Path:
        """Write the files of a stored folder, each verified, and return the folder.

        Args:
            reference: Reference of the stored folder.
            folder: Target folder, created if necessary.
            but: Names of files to leave out.

        Raises:
            IntegrityError: a file does not match its digest, or the manifest names files outside the folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        manifest = {name: sha256 for name, sha256 in self.get_json(reference).items() if name not in but}
        if strangers := [name for name in manifest if Path(name).name != name]:
            raise IntegrityError(f"manifest {reference.sha256[:12]} names files outside its folder: {strangers}")
        with ThreadPoolExecutor(_NUM_AT_ONCE) as several:
            list(several.map(lambda name: self._get_file(manifest[name], folder / name), manifest))
        return folder

    def _get_file(self, sha256: str, file: Path) -> None:
        with self._removal_explained(sha256):
            self._blobs.read_file(_key(sha256), file)
        try:
            self._require(sha256_of(file), sha256)
        except IntegrityError:
            file.unlink()
            raise

    def remove_files(self, folder: Reference, kept: Sequence[Reference], name: str = "") -> None:
        """Remove the files of a stored folder that no kept folder has, to save space.

        Only what the present run wrote is removed: another run may count on what was there before. A mark says that a
        file was removed, not lost.

        Args:
            folder: Folder whose manifest stays.
            kept: Folders that stay as they are.
            name: Only file to remove; empty: all.
        """
        named = {sha256 for one in kept for sha256 in self.get_json(one).values()}
        files = {sha256 for file, sha256 in self.get_json(folder).items() if name in ("", file)}
        for sha256 in (files & self._written) - named:
            self._blobs.write(REMOVED + sha256, b"")
            self._blobs.delete(_key(sha256))
            self._written.remove(sha256)

    def get_file(self, reference: Reference, name: str) -> bytes | None:
        """Return one file of a stored folder, verified; None if there is no such file."""
        sha256 = self.get_json(reference).get(name)
        return self._verified(sha256) if sha256 else None


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"
