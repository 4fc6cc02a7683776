"""Context of running tasks: stores, ledger and registry of the process, and the run that a thread works on.

A flow sets the run once; tasks read it. Nothing here affects a result. LanceDB and MLflow, which take seconds to import,
are imported on first use: workers and short commands do without.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from infra.progress.progress import Display
from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.background_blobs import BackgroundBlobs
from infra.storage.blobs import Blobs, open_blobs
from infra.storage.object_store import ObjectStore
from infra.tracking.steps import Steps
from schemas.errors import DreamGymError

if TYPE_CHECKING:
    from infra.promotion.registry import Registry
    from infra.storage.replay_store import ReplayStore
    from infra.tracking.tracker import Tracker


@dataclass(frozen=True)
class RunContext:
    """Run that tasks work on, with its tracker, display and steps."""

    run_id: str
    recipe_digest: str
    tracker: "Tracker"
    display: Display
    steps: Steps = field(default_factory=Steps)
    remakes_removed: bool = False
    """Whether tasks make again what was removed to save space; else only what is lost."""


_running: ContextVar[RunContext] = ContextVar("running")


def set_run_context(context: RunContext) -> None:
    """Set the run that this thread works on, and every thread that it gives a copy of its context."""
    _running.set(context)


def run_context() -> RunContext:
    """Return the run that this thread works on.

    Raises:
        DreamGymError: no run is set.
    """
    try:
        return _running.get()
    except LookupError:
        raise DreamGymError("no run is active: call tasks from a flow") from None


@lru_cache
def blobs() -> Blobs:
    """Return the store of bytes that the settings name."""
    return open_blobs(settings())


@lru_cache
def background_blobs() -> BackgroundBlobs:
    """Return the same store, for what a run writes while it goes on: objects, and the results that name them."""
    return BackgroundBlobs(blobs())


@lru_cache
def objects() -> ObjectStore:
    """Return the object store of this process."""
    return ObjectStore(background_blobs())


@lru_cache
def ledger() -> Ledger:
    """Return the ledger of promotions; an entry is written after everything that it names."""
    return Ledger(background_blobs())


@lru_cache
def registry() -> "Registry":
    """Return the model registry."""
    from infra.promotion.registry import Registry

    return Registry(settings())


@lru_cache
def replay_store() -> "ReplayStore":
    """Return the replay store of this process."""
    from infra.storage.replay_store import ReplayStore

    return ReplayStore(settings())
