"""Find a stored policy: of a run, or the champion."""

from dataclasses import dataclass
from typing import Any

from flows.find_run import find_run
from infra.blobs import open_blobs
from infra.cycles import summaries
from infra.ledger import Ledger
from infra.settings import settings
from schemas.errors import InputError
from schemas.plain import restored
from schemas.policies import PolicyName
from schemas.records import Reference

CHAMPION = "champion"


@dataclass(frozen=True)
class FoundPolicy:
    """A policy, and the run that made it."""

    reference: Reference
    name: PolicyName | None = None
    summary: dict[str, Any] | None = None
    """Of that run; None for a champion that no run of this home made."""

    @property
    def title(self) -> str:
        """What messages and model cards call it."""
        digest = self.reference.sha256[:12]
        return f"policy {self.name} of {self.summary['cycle_id']}" if self.summary else f"champion {digest}"


def find_policy(run: str, name: PolicyName | None = None) -> FoundPolicy:
    """A policy by the name of its run, or the ledger's champion.

    Args:
        run: A cycle id, the start of one, or `champion`.
        name: Which policy of the run; None: the one that its gate judged. The champion has no choice.

    Raises:
        InputError: there is no such run, or it has no such policy; or there is no champion.
    """
    if run != CHAMPION:
        return _policy_of(find_run(run), name or PolicyName.DREAM)
    if name is not None:
        raise InputError("--policy chooses among the policies of a run, and the champion is one policy: leave it out")
    return _champion()


def _policy_of(summary: dict[str, Any], name: PolicyName) -> FoundPolicy:
    lineage = restored(summary["lineage"])
    if name.key not in lineage:
        present = [one for one in PolicyName if one.key in lineage]
        known = f"it has --policy {', '.join(present)}" if present else "it was stopped before it had one"
        raise InputError(f"cycle {summary['cycle_id']} has no policy {name}: {known}")
    return FoundPolicy(lineage[name.key], name, summary)


def _champion() -> FoundPolicy:
    champion = Ledger(open_blobs(settings())).history().champion
    if champion is None:
        raise InputError("there is no champion: make one with `dreamgym promote`, or name a run")
    for summary in reversed(summaries()):
        lineage = restored(summary["lineage"])
        for name in (PolicyName.DREAM, PolicyName.SIM_TO_REAL):
            if name.key in lineage and lineage[name.key].sha256 == champion.sha256:
                return FoundPolicy(champion, name, summary)
    return FoundPolicy(champion)
