"""A process that forgets where its things lay, so that each test has its own home."""

from pathlib import Path

import pytest

from infra import doors


def use_home(home: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Let every door open on this home."""
    for name, value in {"home": str(home), **settings}.items():
        monkeypatch.setenv(f"DREAMGYM_{name.upper()}", value)
    for door in (doors.settings, doors.blobs, doors.objects, doors.ledger, doors.registry, doors.replay_store):
        door.cache_clear()
