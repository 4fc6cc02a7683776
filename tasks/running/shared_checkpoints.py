"""Share checkpoints of a training through the objects' bucket, so that the latest one outlives its machine.

So a node of a Ray cluster, or a Kubernetes job on another node, goes on with what was begun elsewhere. If objects are
stored in a folder of this machine, checkpoints stay on it, too.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from infra.context import blobs, run_context
from infra.settings import settings
from infra.storage.blobs import Blobs
from models.training.checkpoints import SUFFIX
from schemas.errors import StorageError

CHECKPOINTS = "checkpoints/"
"""Prefix of the keys of checkpoints."""
_LOOK_EVERY_S = 1.0


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """Share a training's checkpoint folder: download the bucket's latest checkpoint before, upload new ones meanwhile.

    A training that succeeds leaves none in the bucket. One that raises leaves its latest.

    Args:
        folder: Checkpoint folder of one training, with the same name on every machine.

    Raises:
        StorageError: the bucket cannot be read. A failed upload is only reported.
    """
    if not settings().object_store_uri.startswith("s3://"):
        yield
        return
    store, prefix = blobs(), f"{CHECKPOINTS}{folder.parent.name}/"
    _bring(store, prefix, folder)
    with _carried(store, prefix, folder, run_context().display.say):
        yield
    with suppress(StorageError):  # maintenance removes what is left
        _delete(store, prefix)


def _bring(store: Blobs, prefix: str, folder: Path) -> None:
    """Download the latest checkpoint from the bucket, unless the folder has it or a later one."""
    here = max((path.name for path in folder.glob(f"*{SUFFIX}")), default="")
    latest = max(store.keys(prefix), default="")
    if latest.removeprefix(prefix) > here:
        folder.mkdir(parents=True, exist_ok=True)
        store.read_file(latest, folder / latest.removeprefix(prefix))


@contextmanager
def _carried(store: Blobs, prefix: str, folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Upload new checkpoints at regular intervals while the training runs."""
    ended = Event()

    def carry() -> None:
        carried = ""
        while not ended.wait(_LOOK_EVERY_S):
            try:
                carried = _carry_latest(store, prefix, folder, carried)
            except StorageError as error:
                say(f"a checkpoint stays on this machine alone: {error}")

    carrier = Thread(target=carry, name="checkpoints to the bucket", daemon=True)
    carrier.start()
    try:
        yield
    finally:
        ended.set()
        carrier.join()


def _carry_latest(store: Blobs, prefix: str, folder: Path, carried: str) -> str:
    """Upload a checkpoint newer than the last upload, delete earlier ones, and return the name of the last upload."""
    latest = max(folder.glob(f"*{SUFFIX}"), default=None)
    if latest is None or latest.name <= carried:
        return carried
    link = folder / "carried"  # the store removes the file that it is given, and the training may remove the other name
    link.unlink(missing_ok=True)
    try:
        os.link(latest, link)
    except FileNotFoundError:  # a newer checkpoint has just replaced it
        return carried
    store.write_file(f"{prefix}{latest.name}", link)
    _delete(store, prefix, before=f"{prefix}{latest.name}")
    return latest.name


def _delete(store: Blobs, prefix: str, before: str = "~") -> None:
    for key in store.keys(prefix):
        if key < before:
            store.delete(key)
