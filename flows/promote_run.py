"""Make the policy of a finished cycle champion, or take the champion back."""

import getpass
import socket
from typing import Any

from flows.judge_run import judge_run
from flows.run import announce_promotion
from infra.progress import Display
from schemas.plain import restored
from tasks.promote import promote, roll_back


def promote_run(summary: dict[str, Any], display: Display, *, again: bool = False) -> str:
    """Let the gate judge a cycle's policy, and make it champion; say so in one line.

    Raises:
        GateRefused: the gate said no, or the policy was rolled back before.
    """
    return promote_judged(judge_run(summary, display), person(), again=again)


def promote_judged(judged: dict[str, Any], by: str, *, again: bool = False) -> str:
    """Make the policy of a cycle champion that was judged just now; say so in one line.

    Raises:
        GateRefused: the gate said no, or the policy was rolled back before.
        Overtaken: somebody else became champion since.
    """
    candidate, report = restored(judged["lineage"]["dream"]), restored(judged["gate"]["report"])
    new = promote(candidate, report, by, again=again)
    announce_promotion(judged)  # again too: whoever announced it the first time may have died of it
    named = f"version {judged['versions']['dream']} ({candidate.sha256[:12]}) of cycle {judged['run_id']}"
    return f"champion is now {named}" if new else f"{named} is champion already"


def roll_back_champion(reason: str) -> str:
    """Bring back the champion before the present one; say so in one line."""
    back = roll_back(person(), reason).policy
    return f"champion is {back.sha256[:12]} again" if back else "there is no champion any more"


def person() -> str:
    """Who acts, for the ledger."""
    return f"{getpass.getuser()}@{socket.gethostname()}"
