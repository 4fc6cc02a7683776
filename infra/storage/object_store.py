"""Content-addressed objects.

An object's address is its sha256, so writes can be repeated and every read is verified.
"""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from infra.storage.blobs import Blobs
from schemas.errors import IntegrityError
from schemas.records import Reference

_NUM_AT_ONCE = 4
"""Number of a folder's files that are read or written in parallel."""
_MODEL = "model"
"""Kind of references that point at a manifest of files."""


class ObjectStore:
    """Store of bytes, JSON and folders by reference."""

    def __init__(self, blobs: Blobs) -> None:
        """Store objects in `blobs`."""
        self._blobs = blobs

    def put(self, content: bytes, kind: str, **notes: float | int | str) -> Reference:
        """Store bytes; the same bytes twice are one object."""
        sha256 = hashlib.sha256(content).hexdigest()
        key = _key(sha256)
        if not self._blobs.holds(key):
            self._blobs.write(key, content)
        return Reference(f"{self._blobs.root}/{key}", sha256, kind, notes)

    def get(self, reference: Reference) -> bytes:
        """Return the bytes of a reference.

        Raises:
            IntegrityError: the bytes do not match the digest.
            StorageError: the object does not exist.
        """
        return self._verified(reference.sha256)

    def _verified(self, sha256: str) -> bytes:
        content = self._blobs.read(_key(sha256))
        if hashlib.sha256(content).hexdigest() != sha256:
            raise IntegrityError(
                f"object {sha256[:12]} in {self._blobs.root} is corrupt: its bytes do not match its name. "
                "Delete it and run again: the task that produced it will run again"
            )
        return content

    def verify(self, reference: Reference) -> None:
        """Read every byte of a reference and compare it with its digest.

        Raises:
            IntegrityError: an object does not match its digest.
            StorageError: an object does not exist.
        """
        content = self.get(reference)
        for sha256 in json.loads(content).values() if reference.kind == _MODEL else ():
            self._verified(sha256)

    def holds(self, reference: Reference) -> bool:
        """Return True if a reference's object, and every file of a folder, exists; only the manifest is verified."""
        if not self._blobs.holds(_key(reference.sha256)):
            return False
        manifest = self.get_json(reference) if reference.kind == _MODEL else {}
        return all(self._blobs.holds(_key(sha256)) for sha256 in manifest.values())

    def put_json(self, value: Any, kind: str, **notes: float | int | str) -> Reference:
        """Store a JSON value."""
        return self.put(json.dumps(value, sort_keys=True).encode(), kind, **notes)

    def get_json(self, reference: Reference) -> Any:
        """Return the JSON value of a reference."""
        return json.loads(self.get(reference))

    def put_folder(self, folder: Path, over: Reference | None = None, **notes: float | int | str) -> Reference:
        """Store every file of a model's flat folder; return a reference to the manifest of their digests.

        Args:
            folder: Folder of the files.
            over: Stored folder whose other files are included in the manifest.
            notes: Notes of the reference.
        """
        files = _files(folder)
        with ThreadPoolExecutor(_NUM_AT_ONCE) as several:
            stored = several.map(lambda path: self.put(path.read_bytes(), "file").sha256, files)
            manifest = dict(zip([path.name for path in files], stored, strict=True))
        beneath = self.get_json(over) if over else {}
        return self.put_json(beneath | manifest, _MODEL, **notes)

    def get_folder(self, reference: Reference, folder: Path, but: str = "") -> Path:
        """Write the files of a stored folder, each verified, and return the folder.

        Args:
            reference: Reference of the stored folder.
            folder: Target folder, created if necessary.
            but: Name of a file to leave out.

        Raises:
            IntegrityError: a file does not match its digest, or the manifest names files outside the folder.
        """
        folder.mkdir(parents=True, exist_ok=True)
        manifest = {name: sha256 for name, sha256 in self.get_json(reference).items() if name != but}
        if strangers := [name for name in manifest if Path(name).name != name]:
            raise IntegrityError(f"manifest {reference.sha256[:12]} names files outside its folder: {strangers}")
        with ThreadPoolExecutor(_NUM_AT_ONCE) as several:
            list(several.map(lambda name: (folder / name).write_bytes(self._verified(manifest[name])), manifest))
        return folder

    def get_file(self, reference: Reference, name: str) -> bytes | None:
        """Return one file of a stored folder, verified; None if there is no such file."""
        sha256 = self.get_json(reference).get(name)
        return self._verified(sha256) if sha256 else None


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())
