"""Checkpoints of a training where others find them: a machine that dies leaves the latest in the bucket of the objects.

So a node of a Ray cluster, or a Kubernetes job on another one, goes on with what was begun elsewhere. Where objects lie in
a folder of this machine, checkpoints stay in theirs.
"""

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
"""Begins their keys."""
_LOOK_EVERY_S = 1.0


@contextmanager
def shared(folder: Path) -> Iterator[None]:
    """While a training keeps its checkpoints in a folder: bring the bucket's latest before, carry new ones there.

    A training that ends well leaves none in the bucket. One that is raised from leaves its latest.

    Args:
        folder: Of one training, named as it is on every machine.

    Raises:
        StorageError: the bucket cannot be asked for a checkpoint. That one cannot be carried there is only said.
    """
    if not settings().object_store_uri.startswith("s3://"):
        yield
        return
    store, prefix = blobs(), f"{CHECKPOINTS}{folder.parent.name}/"
    _bring(store, prefix, folder)
    with _carried(store, prefix, folder, run_context().display.say):
        yield
    with suppress(StorageError):  # maintenance takes away what is left
        _delete(store, prefix)


def _bring(store: Blobs, prefix: str, folder: Path) -> None:
    """The latest of the bucket, unless the folder has it, or a later one."""
    here = max((path.name for path in folder.glob(f"*{SUFFIX}")), default="")
    latest = max(store.keys(prefix), default="")
    if latest.removeprefix(prefix) > here:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / latest.removeprefix(prefix)).write_bytes(store.read(latest))


@contextmanager
def _carried(store: Blobs, prefix: str, folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Look for a new checkpoint now and then, beside the training."""
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
    """Put a checkpoint that is newer than the one carried last into the bucket, and take away those before it."""
    latest = max(folder.glob(f"*{SUFFIX}"), default=None)
    if latest is None or latest.name <= carried:
        return carried
    try:
        content = latest.read_bytes()
    except FileNotFoundError:  # a newer one has just taken its place
        return carried
    store.write(f"{prefix}{latest.name}", content)
    _delete(store, prefix, before=f"{prefix}{latest.name}")
    return latest.name


def _delete(store: Blobs, prefix: str, before: str = "~") -> None:
    for key in store.keys(prefix):
        if key < before:
            store.delete(key)
