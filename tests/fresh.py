"""A home of its own for each test: reset what a process keeps of the home that it used before."""

from pathlib import Path
from typing import TYPE_CHECKING

from infra import context

if TYPE_CHECKING:
    import pytest

HOME_VARIABLE = "DREAMGYM_HOME"


def use_home(home: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    """Make this the home of the process."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    reset_context()


def reset_context() -> None:
    """Open settings, stores, ledger and registry anew when they are next used."""
    for opened in (
        context.settings,
        context.blobs,
        context.objects,
        context.ledger,
        context.registry,
        context.replay_store,
    ):
        opened.cache_clear()
