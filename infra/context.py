"""Context of the running process: stores, ledger, registry, and the run that its tasks work on.

A flow sets the run once; tasks read it. Nothing here decides a result.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from infra.promotion.ledger import Ledger
from infra.promotion.registry import Registry
from infra.settings import settings
from infra.storage.blobs import Blobs, open_blobs
from infra.storage.object_store import ObjectStore
from infra.tracking.progress import Display
from infra.tracking.steps import Steps
from infra.tracking.tracker import Tracker
from schemas.errors import DreamGymError

if TYPE_CHECKING:
    from infra.storage.replay_store import ReplayStore


@dataclass(frozen=True)
class RunContext:
    """What the tasks of a run need beside their arguments."""

    run_id: str
    recipe_digest: str
    tracker: Tracker
    display: Display
    steps: Steps = field(default_factory=Steps)


_running: list[RunContext] = []


def set_run_context(context: RunContext) -> None:
    """Make this the run of the process."""
    _running[:] = [context]


def run_context() -> RunContext:
    """The run that is going on in this process."""
    if not _running:
        raise DreamGymError("no run is going on: call tasks from a flow")
    return _running[0]


@lru_cache
def blobs() -> Blobs:
    """Bytes by key, where the settings say."""
    return open_blobs(settings())


@lru_cache
def objects() -> ObjectStore:
    """The object store of this process."""
    return ObjectStore(blobs())


@lru_cache
def ledger() -> Ledger:
    """The ledger of promotions."""
    return Ledger(blobs())


@lru_cache
def registry() -> Registry:
    """The model registry."""
    return Registry(settings())


@lru_cache
def replay_store() -> "ReplayStore":
    """The replay store of this process. LanceDB, which takes a second to import, is imported when it is first asked for."""
    from infra.storage.replay_store import ReplayStore

    return ReplayStore(settings())
