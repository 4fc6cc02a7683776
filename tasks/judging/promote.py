"""Promote what its gate let through, take a promotion back, and let the registry's aliases follow the ledger.

in:  a policy and its gate, verified byte by byte
out: an entry of the ledger; a registry version

Nothing here is cached: who is champion may have changed since.
"""

import json
import logging
from collections.abc import Collection
from typing import Any

from infra.context import ledger, objects, registry, run_context
from schemas.errors import ConflictError, GateRefused, InputError, StorageError
from schemas.ledger import Decision, Entry, History
from schemas.records import Reference

_log = logging.getLogger(__name__)


def present_champion() -> Reference | None:
    """The policy in force. Aliases that a crash left behind are put right on the way."""
    registry().follow(ledger())
    return ledger().history().champion


def champion_to_beat(candidate: Reference, *, anew: bool = False) -> Reference | None:
    """The champion whose place a candidate of this run would take; None if it would be the first.

    A run that is resumed judges against the champion that it judged against before. For a candidate that is champion
    itself it is the one before.

    Args:
        candidate: Of this run.
        anew: Although the run judged it before: today's champion counts.
    """
    present_champion()
    history = ledger().history()
    own = (i for i, one in enumerate(history.entries) if one.is_judgement_of(candidate, run_context().run_id))
    if not anew and (first := next(own, None)) is not None:
        history = History(history.entries[:first])
    champion = history.champion
    is_candidate = champion is not None and champion.sha256 == candidate.sha256
    rival = history.before_champion if is_candidate else champion
    if rival:
        require_stored(rival)
    return rival


def require_stored(champion: Reference) -> None:
    """Refuse to go on with a champion whose objects are gone.

    Raises:
        StorageError: they are, and what to do.
    """
    if not objects().holds(champion):
        raise StorageError(
            f"champion {champion.sha256[:12]} is no longer whole in the object store: restore its objects from a backup, or "
            "take it out of force with `dreamgym rollback`. What this run has finished stays"
        )


def is_in_force(policy: Reference) -> bool:
    """Whether a policy was promoted, by whomever, and no rollback has taken it out of force since."""
    return policy.sha256 in {one.sha256 for one in ledger().history().standing}


def record_judgement(candidate: Reference, gate: dict[str, Any], **more_tags: str) -> str:
    """Register the judged candidate with its gate, once. Returns its registry version.

    Args:
        candidate: Of this run.
        gate: The verdict on it.
        more_tags: Of the version.

    Raises:
        StorageError: MLflow has not taken what was measured: it is away, and nobody is judged meanwhile.
    """
    report = _verified(candidate, gate["report"])
    run_context().tracker.flush()
    outcome = "passed" if report["passed"] else "refused"
    tags = {"gate": outcome, "gate_sha256": gate["report"].sha256, "run_id": run_context().run_id, **more_tags}
    version = registry().register(candidate, tags, run_context().tracker.parent.info.run_id)
    judged = Entry(Decision.JUDGED, candidate, gate["report"].sha256, report["passed"], run_context().run_id)

    def unless_known(history: History) -> Entry | None:
        known = any(entry.decision is Decision.JUDGED and entry.gate == judged.gate for entry in history.entries)
        return None if known else judged

    ledger().append(unless_known)
    registry().follow(ledger())
    run_context().tracker.cycle().log_text(json.dumps(report, indent=2, sort_keys=True), "gate.json")
    return version


def is_judged(candidate: Reference, report: Reference) -> bool:
    """Whether a recorded verdict on a candidate is against today's champion, or it is champion itself."""
    history = ledger().history()
    champion = history.champion.sha256 if history.champion else ""
    recorded = {entry.gate for entry in history.entries if entry.decision is Decision.JUDGED}
    return report.sha256 in recorded and champion in (candidate.sha256, objects().get_json(report)["champion"])


def promote(candidate: Reference, report: Reference, by: str, *, again: bool = False) -> bool:
    """Make a candidate the champion; whether it was not yet.

    Args:
        candidate: Every file of it is verified first.
        report: Of the gate that judged it.
        by: Run or person.
        again: Even though a rollback once took it out of force.

    Raises:
        GateRefused: the gate said no, to this candidate or to its succession; or it was rolled back before.
        ConflictError: the champion is not the one that it was judged against any more.
        IntegrityError: the gate's report or the candidate is not what its digest says.
    """
    gate = _verified(candidate, report)
    if reasons := objections(gate):
        raise GateRefused(f"the gate refused {candidate.sha256[:12]}: {'; '.join(reasons)}")

    def succeed(history: History) -> Entry | None:
        champion = history.champion.sha256 if history.champion else ""
        if champion == candidate.sha256:
            return None
        if champion != gate["champion"]:
            raise ConflictError(
                f"{candidate.sha256[:12]} was judged against champion {gate['champion'][:12] or 'none'}, and it is "
                f"{champion[:12] or 'none'} now. Judge it anew: dreamgym promote"
            )
        if candidate.sha256 in history.withdrawn and not again:
            raise GateRefused(f"{candidate.sha256[:12]} was rolled back before. On purpose: dreamgym promote --again")
        return Entry(Decision.PROMOTED, candidate, report.sha256, True, by)

    written = ledger().append(succeed)
    _let_aliases_follow()
    return written is not None


def is_open(candidate: Reference, report: Reference) -> bool:
    """Whether nobody has decided yet about a candidate that was judged: it was not promoted, declined or rolled back."""
    history = ledger().history()
    is_champion = history.champion is not None and history.champion.sha256 == candidate.sha256
    return not is_champion and candidate.sha256 not in history.withdrawn and report.sha256 not in history.declined


def decline(candidate: Reference, report: Reference, by: str, reason: str) -> None:
    """Note, once, that a person did not let a candidate through that its gate had let through."""
    entry = Entry(Decision.DECLINED, candidate, report.sha256, True, by, reason)
    ledger().append(lambda history: None if report.sha256 in history.declined else entry)
    _let_aliases_follow()


def leaves_no_champion() -> bool:
    """Whether a rollback would bring nobody back."""
    history = ledger().history()
    return history.champion is not None and history.before_champion is None


def roll_back(by: str, reason: str, to: Collection[str] | None = None) -> Entry:
    """Bring back the champion before the present one, or nobody. Returns the ledger's entry.

    Args:
        by: Person.
        reason: For the ledger.
        to: Digests of policies of which the latest champion comes back, however many came after it.

    Raises:
        InputError: there is no champion, or none of these was in force before it.
        ConflictError: somebody promoted or rolled back meanwhile.
        IntegrityError: the policy that would come back is not what its digest says.
    """
    seen = ledger().history()
    if seen.champion is None:
        raise InputError("there is no champion to roll back: `dreamgym history` shows what happened")
    back = seen.before_champion if to is None else _latest_before_champion(seen, to)
    if back:
        objects().verify(back)

    def withdraw(history: History) -> Entry:
        if history.champion != seen.champion:
            raise ConflictError("the champion changed meanwhile; look at `dreamgym history` and run again")
        return Entry(Decision.ROLLED_BACK, back, by=by, reason=reason)

    entry = ledger().append(withdraw)
    assert entry is not None, "a rollback is written or raises"
    _let_aliases_follow()
    return entry


def _latest_before_champion(history: History, policies: Collection[str]) -> Reference:
    for one in reversed(history.standing[:-1]):
        if one.sha256 in policies:
            return one
    raise InputError("it was not champion before the present one: `dreamgym history` shows who was")


def _let_aliases_follow() -> None:
    """Show in MLflow what was decided. It is decided all the same if MLflow cannot: the ledger counts."""
    try:
        registry().follow(ledger())
    except StorageError as error:
        _log.warning("aliases in MLflow are behind the ledger; the next cycle or judgement puts them right: %s", error)


def objections(gate: dict[str, Any]) -> list[str]:
    """Everything that a gate says against making its candidate the champion."""
    succession = gate["over_champion"] or {"reasons": []}
    return [*gate["reasons"], *(f"against the champion, {reason}" for reason in succession["reasons"])]


def _verified(candidate: Reference, report: Reference) -> dict[str, Any]:
    """The gate's report, if it is about this candidate, and both are what their digests say."""
    gate = objects().get_json(report)
    if gate["candidate"] != candidate.sha256:
        raise InputError(f"gate {report.sha256[:12]} judged {gate['candidate'][:12]}, not {candidate.sha256[:12]}")
    objects().verify(candidate)
    return gate
