"""The ledger of promotions: all judgements, promotions and rollbacks in order. The champion is derived from it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from schemas.records import Reference


class Decision(StrEnum):
    """Kind of a ledger entry."""

    JUDGED = "judged"
    PROMOTED = "promoted"
    DECLINED = "declined"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision about one policy; never changed once written."""

    decision: Decision
    policy: Reference | None
    """Policy judged or promoted. For a rollback, the restored champion; None if there was none before."""
    gate: str = ""
    """Digest of the gate report that the decision rests on."""
    passed: bool = False
    """Verdict of that gate."""
    by: str = ""
    """Run or person that decided."""
    reason: str = ""
    time_utc: str = ""

    def is_judgement_of(self, policy: Reference, by: str) -> bool:
        """Return whether this entry records that a run judged a policy."""
        is_theirs = self.decision is Decision.JUDGED and self.by == by
        return is_theirs and self.policy is not None and self.policy.sha256 == policy.sha256


@dataclass(frozen=True, slots=True)
class History:
    """All entries, oldest first. The fence of the next entry is their number plus one."""

    entries: tuple[Entry, ...] = ()

    @property
    def champion(self) -> Reference | None:
        """The policy in force."""
        standing, _ = self._standing_and_withdrawn()
        return standing[-1] if standing else None

    @property
    def before_champion(self) -> Reference | None:
        """The policy that a rollback would restore."""
        standing, _ = self._standing_and_withdrawn()
        return standing[-2] if len(standing) > 1 else None

    @property
    def standing(self) -> list[Reference]:
        """Stack of champions, the present one last."""
        return self._standing_and_withdrawn()[0]

    @property
    def withdrawn(self) -> set[str]:
        """Digests of the policies that a rollback took out of force and nobody promoted again on purpose."""
        return self._standing_and_withdrawn()[1]

    def _standing_and_withdrawn(self) -> tuple[list[Reference], set[str]]:
        """Replay the entries: a promotion pushes a champion, a rollback withdraws all above the one it restores."""
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
        """Digests of the gate reports whose candidate a person declined."""
        return {entry.gate for entry in self.entries if entry.decision is Decision.DECLINED}

    @property
    def challenger(self) -> Reference | None:
        """The policy that was judged last."""
        return self._last_judged(lambda _: True)

    @property
    def real_env_candidate(self) -> Reference | None:
        """The latest policy that passed and was not declined; it may be fine-tuned in the real environment."""
        return self._last_judged(lambda entry: entry.passed and entry.gate not in self.declined)

    def _last_judged(self, counts: Callable[[Entry], bool]) -> Reference | None:
        judged = (entry for entry in reversed(self.entries) if entry.decision is Decision.JUDGED)
        return next((entry.policy for entry in judged if counts(entry)), None)
