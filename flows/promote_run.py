"""Make the policy of a finished cycle champion, or take the champion back.

A recorded verdict against today's champion is not passed again. So promoting takes seconds: what evaluates policies, and
Prefect, are imported only where a policy has to be judged anew.
"""

import getpass
import socket
from typing import Any

from infra.prefect_server import is_server_named
from infra.progress import Display
from schemas.plain import references_in, restored
from tasks.promote import is_judged, promote, roll_back
from tasks.verify_rows import verify_rows


def promote_run(summary: dict[str, Any], display: Display, *, again: bool = False) -> str:
    """Let the gate judge a cycle's policy, if it has not against today's champion, and make it champion; say so in one line.

    Raises:
        GateRefused: the gate said no, or the policy was rolled back before.
        IntegrityError: rows that the verdict rests on, or the policy, are not what was written.
    """
    if _is_judged(summary):
        verify_rows(references_in(restored(summary["lineage"])))
    else:
        summary = _judged_anew(summary, display)
    return promote_judged(summary, person(), again=again)


def _is_judged(summary: dict[str, Any]) -> bool:
    gate = restored(summary["gate"])
    return bool(gate) and is_judged(restored(summary["lineage"]["dream"]), gate["report"])


def _judged_anew(summary: dict[str, Any], display: Display) -> dict[str, Any]:
    from infra.embedded import open_prefect
    from infra.settings import settings

    open_prefect(settings())
    from flows.judge_run import judge_run

    return judge_run(summary, display)


def promote_judged(judged: dict[str, Any], by: str, *, again: bool = False) -> str:
    """Make the policy of a cycle champion that was judged before; say so in one line.

    Raises:
        GateRefused: the gate said no, or the policy was rolled back before.
        Overtaken: somebody else became champion since.
    """
    candidate, report = restored(judged["lineage"]["dream"]), restored(judged["gate"]["report"])
    new = promote(candidate, report, by, again=again)
    _announce(
        judged["cycle_id"], candidate.sha256
    )  # again too: whoever announced it the first time may have died of it
    named = f"version {judged['versions']['dream']} ({candidate.sha256[:12]}) of cycle {judged['cycle_id']}"
    return f"champion is now {named}" if new else f"{named} is champion already"


def _announce(cycle_id: str, policy: str) -> None:
    """Tell deployments that fine-tune promoted policies; embedded Prefect has none."""
    if is_server_named():
        from infra.announcements import POLICY_PROMOTED, announce

        announce(POLICY_PROMOTED, policy, {"cycle_id": cycle_id, "policy": policy})


def roll_back_champion(reason: str) -> str:
    """Bring back the champion before the present one; say so in one line."""
    back = roll_back(person(), reason).policy
    return f"champion is {back.sha256[:12]} again" if back else "there is no champion any more"


def person() -> str:
    """Who acts, for the ledger."""
    return f"{getpass.getuser()}@{socket.gethostname()}"
