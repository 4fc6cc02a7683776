"""Promote a candidate that passed its gate, roll a promotion back, and update the MLflow registry from the ledger.

in:  a policy and its gate, verified byte by byte
out: a ledger entry; a registry version

Nothing here is cached: the champion may have changed since.
"""

import json
import logging
from collections.abc import Collection, Mapping
from typing import Any

from infra.context import ledger, objects, registry, run_context
from schemas.errors import ConflictError, GateRefused, InputError, StorageError
from schemas.ledger import Decision, Entry, History
from schemas.records import Reference
from schemas.runs import NOT_PROVEN

_log = logging.getLogger(__name__)


def present_champion() -> Reference | None:
    """Return the champion, after updating the MLflow registry from the ledger in case a crash left it behind."""
    registry().follow(ledger())
    return ledger().history().champion


def champion_to_beat(candidate: Reference, *, anew: bool = False) -> Reference | None:
    """Return the champion that a candidate of this run would replace; None if it would be the first.

    A resumed run judges against the same champion as before. If the candidate itself is champion, the champion before
    it is returned.

    Args:
        candidate: Candidate of this run.
        anew: Use today's champion even if the run judged the candidate before.
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


def require_stored(policy: Reference) -> None:
    """Raise an error if objects of a policy are missing from the object store.

    Raises:
        StorageError: objects are missing; the message says what to do.
    """
    if not objects().holds(policy):
        raise StorageError(
            f"policy {policy.sha256[:12]} is no longer whole in the object store: restore its objects from a backup; if it is "
            "the champion, withdraw it with `dreamgym rollback`. Finished steps of this run are not repeated"
        )


def is_in_force(policy: Reference) -> bool:
    """Return whether a policy was promoted, by any run or person, and no rollback has withdrawn it since."""
    return policy.sha256 in {one.sha256 for one in ledger().history().standing}


def record_judgement(candidate: Reference, gate: Mapping[str, Any], **more_tags: str) -> str:
    """Register the judged candidate with its gate, once, and return its registry version.

    Args:
        candidate: Candidate of this run.
        gate: Verdict on the candidate.
        more_tags: Further tags of the version.

    Raises:
        StorageError: MLflow is unavailable and has not received the measurements; no candidate is judged meanwhile.
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
    """Return whether a verdict is recorded, and is against today's champion or its candidate is champion itself."""
    history = ledger().history()
    champion = history.champion.sha256 if history.champion else ""
    recorded = {entry.gate for entry in history.entries if entry.decision is Decision.JUDGED}
    return report.sha256 in recorded and champion in (candidate.sha256, objects().get_json(report)["champion"])


def promote(candidate: Reference, report: Reference, by: str, *, again: bool = False, unproven: bool = False) -> bool:
    """Make a candidate the champion; return False if it was champion already.

    Args:
        candidate: Candidate to promote; every file is verified first.
        report: Report of the gate that judged it.
        by: Run or person that promotes it.
        again: Promote it even if a rollback withdrew it before.
        unproven: Promote it even though no real environment has proven it; other objections stand.

    Raises:
        GateRefused: the gate refused the candidate or its succession, or the candidate was rolled back before.
        ConflictError: the champion is no longer the one that the candidate was judged against.
        IntegrityError: the gate's report or the candidate does not match its digest.
    """
    gate = _verified(candidate, report)
    if reasons := [one for one in objections(gate) if not (unproven and one == NOT_PROVEN)]:
        raise GateRefused(f"the gate refused {candidate.sha256[:12]}: {'; '.join(reasons)}")

    def succeed(history: History) -> Entry | None:
        champion = history.champion.sha256 if history.champion else ""
        if champion == candidate.sha256:
            return None
        if champion != gate["champion"]:
            raise ConflictError(
                f"{candidate.sha256[:12]} was judged against champion {gate['champion'][:12] or 'none'}, and it is "
                f"{champion[:12] or 'none'} now. Judge it again: dreamgym promote"
            )
        if candidate.sha256 in history.withdrawn and not again:
            raise GateRefused(
                f"{candidate.sha256[:12]} was rolled back before. To promote it anyway: dreamgym promote --again"
            )
        return Entry(Decision.PROMOTED, candidate, report.sha256, True, by)

    written = ledger().append(succeed)
    _update_champion_alias()
    return written is not None


def is_open(candidate: Reference, report: Reference) -> bool:
    """Return whether a judged candidate awaits a decision: it was not promoted, declined or rolled back."""
    history = ledger().history()
    is_decided = is_in_force(candidate) or candidate.sha256 in history.withdrawn
    return not is_decided and report.sha256 not in history.declined


def decline(candidate: Reference, report: Reference, by: str, reason: str) -> None:
    """Record, once, that a person declined a candidate that had passed its gate."""
    entry = Entry(Decision.DECLINED, candidate, report.sha256, True, by, reason)
    ledger().append(lambda history: None if report.sha256 in history.declined else entry)
    _update_champion_alias()


def leaves_no_champion() -> bool:
    """Return whether a rollback would leave no champion."""
    history = ledger().history()
    return history.champion is not None and history.before_champion is None


def roll_back(by: str, reason: str, to: Collection[str] | None = None) -> Entry:
    """Bring back the champion before the present one, or none, and return the ledger's entry.

    Args:
        by: Person who rolls back.
        reason: Reason for the ledger.
        to: Digests of policies; the latest earlier champion among them comes back, however many came after it.

    Raises:
        InputError: there is no champion, or none of these policies was in force before it.
        ConflictError: the champion changed meanwhile by a promotion or a rollback.
        IntegrityError: the policy that would come back does not match its digest.
    """
    seen = ledger().history()
    if seen.champion is None:
        raise InputError("there is no champion to roll back: `dreamgym history` shows what happened")
    back = seen.before_champion if to is None else _latest_before_champion(seen, to)
    if back:
        objects().verify(back)

    def withdraw(history: History) -> Entry:
        if history.champion != seen.champion:
            raise ConflictError("the champion changed in the meantime; see `dreamgym history` and run again")
        return Entry(Decision.ROLLED_BACK, back, by=by, reason=reason)

    entry = ledger().append(withdraw)
    assert entry is not None, "a rollback is written or raises"
    _update_champion_alias()
    return entry


def _latest_before_champion(history: History, policies: Collection[str]) -> Reference:
    for one in reversed(history.standing[:-1]):
        if one.sha256 in policies:
            return one
    raise InputError("it was not champion before the present one: `dreamgym history` shows who was")


def _update_champion_alias() -> None:
    """Update MLflow from the ledger. A failure is only logged: the decision stands, since the ledger counts."""
    try:
        registry().follow(ledger())
    except StorageError as error:
        _log.warning("aliases in MLflow are behind the ledger; the next cycle or judgement puts them right: %s", error)


def objections(gate: Mapping[str, Any]) -> list[str]:
    """Return every reason that a gate gives against making its candidate the champion."""
    succession = gate["over_champion"] or {"reasons": []}
    return [*gate["reasons"], *(f"against the champion, {reason}" for reason in succession["reasons"])]


def _verified(candidate: Reference, report: Reference) -> dict[str, Any]:
    """Return the gate's report, after checking that it is about this candidate and that both match their digests."""
    gate = objects().get_json(report)
    if gate["candidate"] != candidate.sha256:
        raise InputError(f"gate {report.sha256[:12]} judged {gate['candidate'][:12]}, not {candidate.sha256[:12]}")
    objects().verify(candidate)
    return gate
