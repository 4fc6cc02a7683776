"""The ledger of promotions: every judgement, promotion and rollback in order; who is champion follows from it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from schemas.records import Reference


class Decision(StrEnum):
    """What an entry records."""

    JUDGED = "judged"
    PROMOTED = "promoted"
    DECLINED = "declined"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision about one policy; never changed once written."""

    decision: Decision
    policy: Reference | None
    """Who was judged or promoted; who is champion again after a rollback, None if nobody was before."""
    gate: str = ""
    """Digest of the gate's report that it rests on."""
    passed: bool = False
    """What that gate said."""
    by: str = ""
    """Cycle or person."""
    reason: str = ""
    time_utc: str = ""

    def is_judgement_of(self, policy: Reference, by: str) -> bool:
        """Whether it records that a run judged a policy."""
        is_theirs = self.decision is Decision.JUDGED and self.by == by
        return is_theirs and self.policy is not None and self.policy.sha256 == policy.sha256


@dataclass(frozen=True, slots=True)
class History:
    """All entries, oldest first; the fence of the next one is their number plus one."""

    entries: tuple[Entry, ...] = ()

    @property
    def champion(self) -> Reference | None:
        """The policy in force."""
        standing, _ = self._standing_and_withdrawn()
        return standing[-1] if standing else None

    @property
    def before_champion(self) -> Reference | None:
        """Who a rollback would bring back."""
        standing, _ = self._standing_and_withdrawn()
        return standing[-2] if len(standing) > 1 else None

    @property
    def standing(self) -> list[Reference]:
        """Champions one upon the other, the present one last."""
        return self._standing_and_withdrawn()[0]

    @property
    def withdrawn(self) -> set[str]:
        """Digests of the policies that a rollback took out of force, and that nobody promoted again on purpose."""
        return self._standing_and_withdrawn()[1]

    def _standing_and_withdrawn(self) -> tuple[list[Reference], set[str]]:
        """Champions one upon the other: a promotion adds one, a rollback withdraws all above the one that comes back."""
        standing: list[Reference] = []
        withdrawn: set[str] = set()
        for entry in self.entries:
            if entry.decision is Decision.PROMOTED and entry.policy:
                standing.append(entry.policy)
                withdrawn.discard(entry.policy.sha256)
            elif entry.decision is Decision.ROLLED_BACK:
                withdrawn.add(standing.pop().sha256)
                while entry.policy and standing and standing[-1].sha256 != entry.policy.sha256:
                    withdrawn.add(standing.pop().sha256)
        return standing, withdrawn

    @property
    def declined(self) -> set[str]:
        """Digests of the gates that a person did not follow."""
        return {entry.gate for entry in self.entries if entry.decision is Decision.DECLINED}

    @property
    def challenger(self) -> Reference | None:
        """The policy that was judged last."""
        return self._last_judged(lambda _: True)

    @property
    def real_env_candidate(self) -> Reference | None:
        """The policy that passed last, and that nobody declined: it may be fine-tuned in the real environment."""
        return self._last_judged(lambda entry: entry.passed and entry.gate not in self.declined)

    def _last_judged(self, counts: Callable[[Entry], bool]) -> Reference | None:
        judged = (entry for entry in reversed(self.entries) if entry.decision is Decision.JUDGED)
        return next((entry.policy for entry in judged if counts(entry)), None)
