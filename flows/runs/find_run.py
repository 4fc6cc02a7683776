"""Find a run by its id, the start of its id, `@latest` or `@champion`."""

from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.run_records import records
from schemas.errors import InputError
from schemas.plain import restored
from schemas.policies import GATES
from schemas.records import Reference
from schemas.runs import Record, Status

LATEST, CHAMPION = "@latest", "@champion"
_MAX_NAMED = 8


def find_run(name: str | None, *, finished: bool = True) -> Record:
    """Return the record of one run.

    Args:
        name: An id, the start of one, `@latest` or `@champion`; None: the latest that finished.
        finished: Require that the run has results.

    Raises:
        InputError: no run is stored, none has that name, or several have.
    """
    stored = records()
    if not stored:
        raise InputError("no run in this home yet: start one with `dreamgym run textworld-tiny`")
    if name in (None, LATEST):
        return _latest([one for one in stored if one["status"] == Status.FINISHED])
    if name == CHAMPION:
        return _of_champion(stored)
    record = _named(name or "", stored)
    return _finished(record) if finished else record


def _latest(finished: list[Record]) -> Record:
    if not finished:
        raise InputError("no run has finished in this home yet: `dreamgym runs` shows what became of those that began")
    return finished[-1]


def _named(name: str, stored: list[Record]) -> Record:
    exact = [one for one in stored if one["run_id"] == name]
    matching = exact or [one for one in stored if one["run_id"].startswith(name)]
    if len(matching) == 1:
        return matching[0]
    shown = ", ".join(one["run_id"] for one in (matching or stored)[-_MAX_NAMED:])
    if matching:
        raise InputError(f"{len(matching)} runs begin with {name!r}: {shown}. Give more of the id")
    raise InputError(f"no run is called {name!r}; the latest are {shown} (`dreamgym runs` lists them all)")


def _finished(record: Record) -> Record:
    if "lineage" not in record:
        raise InputError(
            f"run {record['run_id']} has no results: it {_what_became_of(record)}. "
            f"`dreamgym run {record['recipe']['name']}` resumes it if nothing has changed"
        )
    return record


def _what_became_of(record: Record) -> str:
    return {Status.RUNNING: "is running", Status.KILLED: "was interrupted"}.get(record["status"], "failed")


def _of_champion(stored: list[Record]) -> Record:
    champion = Ledger(open_blobs(settings())).history().champion
    if champion is None:
        raise InputError("there is no champion: `dreamgym history` shows what was decided")
    if record := find_champions_run(champion, stored):
        return record
    raise InputError(f"no run of this home made champion {champion.sha256[:12]}: its record is gone")


def find_champions_run(champion: Reference, stored: list[Record]) -> Record | None:
    """Return the latest of these runs that produced this policy, in the dream or for real; None if none did."""
    return next((record for record in reversed(stored) if champion.sha256 in candidates_of(record)), None)


def candidates_of(record: Record) -> set[str]:
    """Return the digests of the policies of a run that a gate may judge."""
    made = restored(record.get("lineage", {}))
    return {made[one.key].sha256 for one in GATES if one.key in made}
