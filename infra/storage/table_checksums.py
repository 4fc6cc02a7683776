"""Seals of pinned table versions: the digest of every file that a version reads.

LanceDB never changes a file it has written, but does not verify files when it reads them. So a version is sealed when
it is pinned, and tasks that depend on its rows verify the seal first.
"""

import hashlib
import json
from typing import Any

from infra.storage.blobs import Blobs
from infra.storage.checksummed import checksummed, verified_content
from schemas.errors import IntegrityError

_FOLDER = "table-seals"
_NOT_READ = "transaction file"
"""LanceDB's name for files that only writers read."""


class TableChecksums:
    """Seals by table and tag."""

    def __init__(self, files: Blobs, seals: Blobs) -> None:
        """Store the seals of the tables in `files` in `seals`."""
        self._files, self._seals = files, seals
        self._digests: dict[str, str] = {}
        """Digests of files sealed before: a version shares most of its files with the previous one."""

    def seal(self, table: Any, tag: str) -> None:
        """Seal the open version of a table under the tag that pins it."""
        reads = table.to_lance().tracked_files(min_version=table.version).read_all().to_pylist()
        paths = [one["path"] for one in reads if one["version"] == table.version and one["type"] != _NOT_READ]
        digests = {path: self._digest_once(f"{table.name}.lance/{path}") for path in sorted(paths)}
        content = json.dumps({"version": table.version, "files": digests}).encode()
        self._seals.write(_key(table.name, tag), checksummed(content))

    def verify(self, table: str, tags: set[str]) -> dict[str, int]:
        """Compare every file that versions of a table read with their seals, each file once.

        Returns:
            Version number that was sealed, by tag.

        Raises:
            IntegrityError: a file or a seal was changed.
            StorageError: a file or a seal does not exist.
        """
        seals = {tag: self._opened(table, tag) for tag in sorted(tags)}
        digests: dict[str, str] = {}
        for seal in seals.values():
            digests |= seal["files"]
        for path, digest in digests.items():
            if self._digest(f"{table}.lance/{path}") != digest:
                raise IntegrityError(
                    f"{table}.lance/{path} in {self._files.root} is corrupt: it is not what was written. Restore it from a "
                    "backup, or use another DREAMGYM_HOME and run again"
                )
        return {tag: seal["version"] for tag, seal in seals.items()}

    def drop(self, table: str, tag: str) -> None:
        """Delete the seal of a tag that no longer exists."""
        self._seals.delete(_key(table, tag))

    def _opened(self, table: str, tag: str) -> dict[str, Any]:
        key = _key(table, tag)
        return json.loads(verified_content(self._seals.read(key), f"{key} in {self._seals.root}"))

    def _digest_once(self, key: str) -> str:
        if key not in self._digests:
            self._digests[key] = self._digest(key)
        return self._digests[key]

    def _digest(self, key: str) -> str:
        return hashlib.sha256(self._files.read(key)).hexdigest()


def _key(table: str, tag: str) -> str:
    return f"{_FOLDER}/{table}/{tag}.json"
