"""Maintain the stores: remove what is no longer reachable.

in:  the ledger, the records of runs, results of versioned tasks
out: fewer objects, compact tables

A digest is reachable if the ledger, a run's record, a remaining result, or a reachable manifest or report names it. A
table version is reachable if the ledger, a run's record or a remaining result names its tag. Results are a cache: old
ones are removed, and with them only what nothing else names. So are old checkpoints of trainings that were not resumed.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from infra.storage.blobs import Blobs, Stored
from infra.storage.object_store import REMOVED
from infra.storage.replay_store import ReplayStore
from infra.storage.run_records import OLDER, RUNS
from tasks.running.shared_checkpoints import CHECKPOINTS

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_OBJECT = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})")
_ROOTS = ("ledger/", RUNS, OLDER)
_RESULTS = "results/"
_TAG = re.compile(rb"table_tag\W+([\w.-]+)")
_MAX_REPORT_BYTES = 1_000_000
"""Maximum size of an object that may name others, like manifests and gates. Larger ones are data."""
_GRACE = timedelta(days=1)
"""Minimum age of a removed object; a younger one may belong to a task that has not finished."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Counts of what was removed."""

    num_results: int
    num_objects: int
    num_bytes: int
    num_versions: dict[str, int]


def maintain(blobs: Blobs, tables: ReplayStore, keep: timedelta, now: float | None = None) -> Maintenance:
    """Remove results, checkpoints and versions older than `keep`, and the objects that nothing names any more.

    Args:
        blobs: Store of objects, ledger, run records, results and checkpoints.
        tables: Replay store.
        keep: Age up to which results, checkpoints, and table versions that nothing names, stay.
        now: Seconds since the epoch; None reads the clock.
    """
    now = time.time() if now is None else now
    prefixes = (_RESULTS, CHECKPOINTS, REMOVED)
    results, cut_off, marks = (_older(blobs, prefix, now - keep.total_seconds()) for prefix in prefixes)
    for one in (*results, *cut_off, *marks):
        blobs.delete(one.key)
    roots = [key for root in (*_ROOTS, _RESULTS) for key in blobs.keys(root)]
    garbage = _unreachable(blobs, roots, now)
    for one in garbage:
        blobs.delete(one.key)
    versions = tables.tidy(keep, _named(_TAG, blobs, roots).__contains__)
    return Maintenance(len(results), len(garbage), sum(one.num_bytes for one in garbage), versions)


def _older(blobs: Blobs, prefix: str, than: float) -> list[Stored]:
    return [one for one in blobs.listed(prefix) if one.written < than]


def _unreachable(blobs: Blobs, roots: Iterable[str], now: float) -> list[Stored]:
    objects = {match[1]: one for one in blobs.listed("") if (match := _OBJECT.fullmatch(one.key))}
    reached: set[str] = set()
    found = _named(_DIGEST, blobs, roots)
    while found := (found & objects.keys()) - reached:
        reached |= found
        reports = [objects[digest].key for digest in found if objects[digest].num_bytes <= _MAX_REPORT_BYTES]
        found = _named(_DIGEST, blobs, reports)
    old = [one for digest, one in objects.items() if digest not in reached]
    return [one for one in old if now - one.written > _GRACE.total_seconds()]


def _named(what: re.Pattern[bytes], blobs: Blobs, keys: Iterable[str]) -> set[str]:
    """Return every digest, or every tag, that occurs in the content at these keys."""
    return {name.decode() for key in keys for name in what.findall(blobs.read(key))}
