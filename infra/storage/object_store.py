"""Content-addressed objects.

An object's address is its sha256, so a write can be repeated, and every read is verified.
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
"""Files of a folder that are read or written side by side."""
_MODEL = "model"
"""Kind of the references that are manifests of files."""


class ObjectStore:
    """Puts and gets bytes, JSON and folders by reference."""

    def __init__(self, blobs: Blobs) -> None:
        """Objects are kept among these bytes."""
        self._blobs = blobs

    def put(self, content: bytes, kind: str, **notes: float | int | str) -> Reference:
        """Store bytes; the same bytes twice are one object."""
        sha256 = hashlib.sha256(content).hexdigest()
        key = _key(sha256)
        if not self._blobs.holds(key):
            self._blobs.write(key, content)
        return Reference(f"{self._blobs.root}/{key}", sha256, kind, notes)

    def get(self, reference: Reference) -> bytes:
        """The bytes of a reference.

        Raises:
            IntegrityError: they are not what the digest says.
            StorageError: they are not there.
        """
        return self._verified(reference.sha256)

    def _verified(self, sha256: str) -> bytes:
        content = self._blobs.read(_key(sha256))
        if hashlib.sha256(content).hexdigest() != sha256:
            raise IntegrityError(
                f"object {sha256[:12]} in {self._blobs.root} is corrupt: its bytes do not match its name. "
                "Delete it and run again: the task that made it will make it anew"
            )
        return content

    def verify(self, reference: Reference) -> None:
        """Read every byte of a reference and hold it against its digest.

        Raises:
            IntegrityError: something is not what its digest says.
            StorageError: something is not there.
        """
        content = self.get(reference)
        for sha256 in json.loads(content).values() if reference.kind == _MODEL else ():
            self._verified(sha256)

    def holds(self, reference: Reference) -> bool:
        """Whether a reference's bytes are there, and those of every file of a folder; nothing is verified."""
        if not self._blobs.holds(_key(reference.sha256)):
            return False
        manifest = self.get_json(reference) if reference.kind == _MODEL else {}
        return all(self._blobs.holds(_key(sha256)) for sha256 in manifest.values())

    def put_json(self, value: Any, kind: str, **notes: float | int | str) -> Reference:
        """Store plain data."""
        return self.put(json.dumps(value, sort_keys=True).encode(), kind, **notes)

    def get_json(self, reference: Reference) -> Any:
        """Plain data of a reference."""
        return json.loads(self.get(reference))

    def put_folder(self, folder: Path, over: Reference | None = None, **notes: float | int | str) -> Reference:
        """Store every file of a model's flat folder, and a manifest of their digests, which is the reference.

        Args:
            folder: Of the files.
            over: A stored folder whose other files belong to this one, too.
            notes: Of the reference.
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
            reference: Of the folder.
            folder: Where to; it is made.
            but: A file that is not needed.
        """
        folder.mkdir(parents=True, exist_ok=True)
        manifest = {name: sha256 for name, sha256 in self.get_json(reference).items() if name != but}
        if strangers := [name for name in manifest if Path(name).name != name]:
            raise IntegrityError(f"manifest {reference.sha256[:12]} names files outside its folder: {strangers}")
        with ThreadPoolExecutor(_NUM_AT_ONCE) as several:
            list(several.map(lambda name: (folder / name).write_bytes(self._verified(manifest[name])), manifest))
        return folder

    def get_file(self, reference: Reference, name: str) -> bytes | None:
        """One file of a stored folder, verified; None if there is no such file."""
        sha256 = self.get_json(reference).get(name)
        return self._verified(sha256) if sha256 else None


def _key(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256}"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())
