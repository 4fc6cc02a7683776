"""A home of its own for each test: reset what a process caches of the home that it used before."""

from pathlib import Path
from typing import TYPE_CHECKING

from infra import context

if TYPE_CHECKING:
    import pytest

HOME_VARIABLE = "DREAMGYM_HOME"


def use_home(home: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    """Set the home of this process."""
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    reset_context()


def reset_context() -> None:
    """Open settings, stores, ledger and registry anew at their next use."""
    for opened in (
        context.settings,
        context.blobs,
        context.background_blobs,
        context.objects,
        context.ledger,
        context.registry,
        context.replay_store,
    ):
        opened.cache_clear()
