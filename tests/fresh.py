"""A process that forgets where its things lay, so that each test has its own home."""

from pathlib import Path
from typing import TYPE_CHECKING

from infra import context as doors

if TYPE_CHECKING:
    import pytest

HOME_VARIABLE = "DREAMGYM_HOME"


def use_home(home: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    """Let every door open on this home."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    forget_doors()


def forget_doors() -> None:
    """Let every door of this process be opened anew."""
    for door in (doors.settings, doors.blobs, doors.objects, doors.ledger, doors.registry, doors.replay_store):
        door.cache_clear()
