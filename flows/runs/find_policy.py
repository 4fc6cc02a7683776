"""Find a stored policy: a policy of a run, or the champion."""

from dataclasses import dataclass

from flows.runs.find_run import CHAMPION, find_champions_run, find_run
from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.run_records import records
from schemas.errors import InputError
from schemas.plain import restored
from schemas.policies import GATES, PolicyName
from schemas.records import Reference
from schemas.runs import Record


@dataclass(frozen=True)
class FoundPolicy:
    """A policy, and the run that produced it."""

    reference: Reference
    name: PolicyName | None = None
    summary: Record | None = None
    """Record of that run; None for a champion that no run of this home produced."""

    @property
    def title(self) -> str:
        """Name of the policy in messages and model cards."""
        digest = self.reference.sha256[:12]
        return f"policy {self.name} of {self.summary['run_id']}" if self.summary else f"champion {digest}"


def find_policy(run: str, name: PolicyName | None = None) -> FoundPolicy:
    """Return a policy of a run, or the ledger's champion.

    Args:
        run: A run's id, the start of one, `@latest`, or `champion`.
        name: Policy of the run; None: the promoted one, or else the dream-trained one. Must be None for the champion.

    Raises:
        InputError: there is no such run, it has no such policy, or there is no champion.
    """
    if run.removeprefix("@") != CHAMPION.removeprefix("@"):
        return _policy_of(find_run(run), name)
    if name is not None:
        raise InputError("--policy chooses among the policies of a run, and the champion is one policy: leave it out")
    return _champion()


def _policy_of(record: Record, name: PolicyName | None) -> FoundPolicy:
    is_real = record.get("promoted") == PolicyName.SIM_TO_REAL.key
    name = name or (PolicyName.SIM_TO_REAL if is_real else PolicyName.DREAM)
    lineage = restored(record["lineage"])
    if name.key not in lineage:
        present = [one for one in PolicyName if one.key in lineage]
        known = f"it has --policy {', '.join(present)}" if present else "it was stopped before it had one"
        raise InputError(f"run {record['run_id']} has no policy {name}: {known}")
    return FoundPolicy(lineage[name.key], name, record)


def _champion() -> FoundPolicy:
    champion = Ledger(open_blobs(settings())).history().champion
    if champion is None:
        raise InputError("there is no champion: make one with `dreamgym promote`, or name a run")
    record = find_champions_run(champion, records())
    if record is None:
        return FoundPolicy(champion)
    made = restored(record["lineage"])
    name = next(one for one in GATES if one.key in made and made[one.key].sha256 == champion.sha256)
    return FoundPolicy(champion, name, record)
