"""Make a policy of a finished run champion, or roll the champion back.

A recorded verdict against today's champion is reused, so promoting takes seconds: Prefect and the code that evaluates
policies are imported only if a policy has to be judged again.
"""

import getpass
import socket

from flows.runs.find_run import candidates_of
from infra.orchestration.prefect_server import is_server_named
from infra.progress.progress import Display
from infra.storage.run_records import record_of, save_record
from schemas.errors import GateRefused, InputError
from schemas.plain import references_in, restored
from schemas.policies import GATES, PolicyName
from schemas.records import Reference
from schemas.runs import NOT_PROVEN, Record
from tasks.data.verify_rows import verify_rows
from tasks.judging.promote import is_judged, objections, promote, roll_back


def promote_run(
    record: Record, policy: PolicyName | None, display: Display, *, again: bool = False, unproven: bool = False
) -> str:
    """Judge a policy unless it was judged against today's champion, and promote it; return the outcome in one line.

    Args:
        record: Record of the run.
        policy: `dream` or `sim-to-real`; None: the best one that the gate lets through.
        display: Shows progress.
        again: Promote it even though it was rolled back before.
        unproven: Promote it even though no real environment has proven it.

    Raises:
        GateRefused: the gate refused it, or it was rolled back before.
        InputError: the run has no such policy, or it may not become champion.
        IntegrityError: the policy, or rows that the verdict rests on, do not match their digests.
    """
    name = policy or best_policy(record)
    require_candidate(record, name)
    if record.get("unproven"):
        return promote_unproven(record, person(), again=again, unproven=unproven)
    if _is_judged(record, name):
        verify_rows(references_in(restored(record["lineage"])))
    else:
        record = _judged_anew(record, name, display)
    return promote_judged(record, name, person(), again=again)


def best_policy(record: Record) -> PolicyName:
    """Return the sim-to-real policy if its gate let it through, else the dream-trained policy."""
    gate = record.get("real_gate")
    return PolicyName.SIM_TO_REAL if gate and not objections(restored(gate)) else PolicyName.DREAM


def require_candidate(record: Record, name: PolicyName) -> None:
    """Refuse a policy that a run does not have, or that was trained only as an experiment.

    Raises:
        InputError: it is one of these.
    """
    run_id = record["run_id"]
    if name not in GATES:
        raise InputError(f"the {name} policy of run {run_id} is not judged: --policy dream or --policy sim-to-real")
    if name.key not in record.get("lineage", {}):
        raise InputError(f"run {run_id} has no {name} policy yet: run it further first, with `dreamgym run`")
    if name is PolicyName.SIM_TO_REAL and not record["promoted"]:
        raise InputError(
            f"the {name} policy of run {run_id} continues one that the gate refused: it was an experiment and cannot "
            "become champion"
        )


def _is_judged(record: Record, name: PolicyName) -> bool:
    gate = restored(record.get(GATES[name]) or {})
    return bool(gate) and is_judged(restored(record["lineage"][name.key]), gate["report"])


def _judged_anew(record: Record, name: PolicyName, display: Display) -> Record:
    from infra.orchestration.embedded_prefect import open_prefect

    open_prefect()
    from flows.promotion.judge_run import judge_run

    return judge_run(record, name, display)


def promote_judged(judged: Record, name: PolicyName, by: str, *, again: bool = False) -> str:
    """Promote a policy that was judged before; return the outcome in one line.

    Raises:
        GateRefused: the gate refused it, or it was rolled back before.
        ConflictError: the champion has changed since the judgement.
    """
    outcome = _promoted(judged, name, restored(judged[GATES[name]]["report"]), by, again=again)
    if name is PolicyName.DREAM:
        # Also if it is champion already: the process that promoted it may have died before announcing it.
        announce_promotion(judged["run_id"], restored(judged["lineage"][name.key]).sha256)
    return outcome


def promote_unproven(record: Record, by: str, *, again: bool, unproven: bool) -> str:
    """Promote the policy of a run that had logs alone, if a person accepts that; return the outcome in one line.

    Raises:
        GateRefused: nobody accepts it, or its verdict has other objections.
        ConflictError: the champion has changed since the verdict.
    """
    verdict = restored(record["unproven"])
    if not unproven and verdict["reasons"] == [NOT_PROVEN]:
        raise GateRefused(f"{NOT_PROVEN}. To promote it all the same: dreamgym promote {record['run_id']} --unproven")
    outcome = _promoted(record, PolicyName.DREAM, verdict["report"], by, again=again, unproven=unproven)
    return f"{outcome}, not proven for real"


def _promoted(
    record: Record, name: PolicyName, report: Reference, by: str, *, again: bool, unproven: bool = False
) -> str:
    """Promote a policy on the report of its verdict, write that down in the run's record, and return the outcome."""
    candidate = restored(record["lineage"][name.key])
    new = promote(candidate, report, by, again=again, unproven=unproven)
    save_record({**record_of(record["run_id"]), "promoted": name.key})
    named = (
        f"version {record['versions'][name.key]} ({candidate.sha256[:12]}), the {name} policy of run {record['run_id']}"
    )
    return f"champion is now {named}" if new else f"{named}, is champion already"


def announce_promotion(run_id: str, policy: str) -> None:
    """Notify deployments that fine-tune promoted policies; embedded Prefect has none."""
    if is_server_named():
        from infra.orchestration.announcements import POLICY_PROMOTED, announce

        announce(POLICY_PROMOTED, policy, {"run_id": run_id, "policy": policy})


def roll_back_champion(reason: str, run: Record | None = None) -> str:
    """Restore an earlier champion; return the outcome in one line.

    Args:
        reason: Reason, for the ledger.
        run: Run whose champion is restored; None: the one before the present champion.

    Raises:
        InputError: there is no champion, or no policy of the run was champion before it.
    """
    back = roll_back(person(), reason, candidates_of(run) if run else None).policy
    return f"champion is {back.sha256[:12]} again" if back else "there is no champion any more"


def person() -> str:
    """Return the name of the acting person, for the ledger."""
    return f"{getpass.getuser()}@{socket.gethostname()}"
