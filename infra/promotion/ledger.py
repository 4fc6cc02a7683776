"""Ledger of promotions on conditional puts: append-only, every entry verified, one winner among concurrent writers.

Entry n is stored at `ledger/<n>.json` with its own digest and the digest of entry n - 1. The store refuses to create
an existing key, so exactly one of the writers that read n - 1 entries writes entry n; the others read again.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from infra.storage.blobs import Blobs
from schemas.errors import IntegrityError
from schemas.ledger import Decision, Entry, History
from schemas.records import Reference

_FOLDER = "ledger/"
_MARKS = "ledger-marks/"
"""Folder with one empty object per entry, so that a missing last entry is noticed."""


class Ledger:
    """Reader and writer of the promotion history."""

    def __init__(self, blobs: Blobs) -> None:
        """Open the ledger stored in `blobs`; it is empty until the first entry is appended."""
        self._blobs = blobs
        self._known: list[tuple[Entry, str]] = []
        """Entries that were read and verified, each with its digest."""

    def history(self) -> History:
        """Return all entries.

        Raises:
            IntegrityError: an entry is missing or corrupt.
        """
        self._read_on()
        return History(tuple(entry for entry, _ in self._known))

    def append(self, decide: Callable[[History], Entry | None]) -> Entry | None:
        """Append the entry that `decide` returns; `decide` is called again if another writer was faster.

        Args:
            decide: Returns the next entry, or None if there is nothing to write; raises if the entry is not allowed.
        """
        while True:
            history = self.history()
            entry = decide(history)
            if entry is None:
                return None
            entry = replace(entry, time_utc=datetime.now(UTC).isoformat(timespec="milliseconds"))
            key = _key(len(history.entries) + 1)
            if self._blobs.create(key, _sealed(entry, self._last_digest)):
                self._blobs.write(key.replace(_FOLDER, _MARKS), b"")
                return entry

    @property
    def _last_digest(self) -> str:
        return self._known[-1][1] if self._known else ""

    def _read_on(self) -> None:
        """Read and verify the entries that were added since the last read."""
        marks = {mark.replace(_MARKS, _FOLDER) for mark in self._blobs.keys(_MARKS)}
        keys = self._blobs.keys(_FOLDER)
        wanted = [_key(number) for number in range(1, len(keys) + 1)]
        if missing := sorted((marks | set(wanted)) - set(keys)):
            raise IntegrityError(
                f"{missing[0]} is missing in {self._blobs.root}. Nothing is promoted until it is restored from a backup"
            )
        for key in keys[len(self._known) :]:
            self._known.append(self._opened(key))

    def _opened(self, key: str) -> tuple[Entry, str]:
        """Return a verified entry and its digest."""
        try:
            sealed = json.loads(self._blobs.read(key))
            digest = sealed.pop("sha256")
            if digest == _digest(sealed) and sealed["previous"] == self._last_digest:
                return _entry(sealed["entry"]), digest
        except (ValueError, KeyError, TypeError) as error:
            raise self._corrupt(key) from error
        raise self._corrupt(key)

    def _corrupt(self, key: str) -> IntegrityError:
        return IntegrityError(
            f"{key} in {self._blobs.root} is corrupt: it does not match its digest. Nothing is promoted until it is "
            "restored from a backup"
        )


def _key(number: int) -> str:
    return f"{_FOLDER}{number:08d}.json"


def _digest(sealed: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()


def _sealed(entry: Entry, previous: str) -> bytes:
    """Serialize an entry; the writer's id makes the bytes of two writers differ."""
    sealed = {"entry": asdict(entry), "previous": previous, "writer": uuid4().hex}
    return json.dumps({**sealed, "sha256": _digest(sealed)}, indent=1).encode()


def _entry(plain: dict[str, Any]) -> Entry:
    policy = Reference(**plain["policy"]) if plain["policy"] else None
    return Entry(**{**plain, "policy": policy, "decision": Decision(plain["decision"])})
