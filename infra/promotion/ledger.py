"""The ledger of promotions on conditional puts: append-only, one writer per fence, every entry verified.

Entry n lies at `ledger/<n>.json` with its own digest and the digest of entry n - 1. Creating what is there
is refused by the store, so of all who saw n entries exactly one writes the next; the others look again.
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
"""An empty object for each entry, so that the last one cannot go missing unnoticed."""


class Ledger:
    """Reads and extends the history of promotions."""

    def __init__(self, blobs: Blobs) -> None:
        """The ledger among these bytes; empty until somebody appends."""
        self._blobs = blobs
        self._known: list[tuple[Entry, str]] = []
        """Entries that were read and verified, each with its digest."""

    def history(self) -> History:
        """All entries.

        Raises:
            IntegrityError: an entry is missing, or is not what was written.
        """
        self._read_on()
        return History(tuple(entry for entry, _ in self._known))

    def append(self, decide: Callable[[History], Entry | None]) -> Entry | None:
        """Write what `decide` makes of the present history, which it is asked again whenever somebody was faster.

        Args:
            decide: Returns the next entry, or None if there is nothing to write; raises if it may not be.
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
        """Read what was written since."""
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
        """An entry and its digest."""
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
    """The bytes of an entry; the writer's name makes those of two writers differ."""
    sealed = {"entry": asdict(entry), "previous": previous, "writer": uuid4().hex}
    return json.dumps({**sealed, "sha256": _digest(sealed)}, indent=1).encode()


def _entry(plain: dict[str, Any]) -> Entry:
    policy = Reference(**plain["policy"]) if plain["policy"] else None
    return Entry(**{**plain, "policy": policy, "decision": Decision(plain["decision"])})
