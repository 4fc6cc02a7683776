"""Maintain the stores: what nothing reaches any more goes, what anything reaches stays.

in:  the ledger, the records of runs, results of versioned tasks
out: fewer objects, compact tables

A digest that is named in the ledger, in a run's record or in a result that is kept is reachable, and so is whatever a
reachable manifest or report names, and every table version whose tag they name. Results are a cache: old ones go, and
with them only what nothing else names. So do old checkpoints, of trainings that nobody went on with.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from infra.storage.blobs import Blobs, Stored
from infra.storage.replay_store import ReplayStore
from infra.storage.run_records import OLDER, RUNS
from tasks.running.shared_checkpoints import CHECKPOINTS

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_OBJECT = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})")
_ROOTS = ("ledger/", RUNS, OLDER)
_RESULTS = "results/"
_TAG = re.compile(rb"table_tag\W+([\w.-]+)")
_MAX_REPORT_BYTES = 1_000_000
"""Manifests, gates and successes are smaller; what is larger is data, which names nothing."""
_GRACE = timedelta(days=1)
"""An object that is younger may belong to a task that has not finished."""


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What went."""

    num_results: int
    num_objects: int
    num_bytes: int
    num_versions: dict[str, int]


def maintain(blobs: Blobs, tables: ReplayStore, keep: timedelta, now: float | None = None) -> Maintenance:
    """Remove results and versions older than `keep`, and the objects that nothing names any more.

    Args:
        blobs: Objects, ledger, records of runs and results.
        tables: The replay store.
        keep: Age up to which results, and table versions that nothing names, stay.
        now: Seconds since the epoch; the clock's if not given.
    """
    now = time.time() if now is None else now
    results, cut_off = (_older(blobs, prefix, now - keep.total_seconds()) for prefix in (_RESULTS, CHECKPOINTS))
    for one in (*results, *cut_off):
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
    """Every digest, or every tag, that occurs in what lies at these keys."""
    return {name.decode() for key in keys for name in what.findall(blobs.read(key))}
