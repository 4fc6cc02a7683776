"""Approval of a policy that passed its gate: the flow run is suspended, and a person answers a form in Prefect."""

from typing import Any

from prefect.flow_runs import suspend_flow_run
from prefect.input import RunInput

from flows.flow_run import present_flow_run
from flows.promotion.promote_run import promote_judged
from flows.reports.show_run import with_interval
from schemas.plain import restored
from schemas.policies import PolicyName
from tasks.judging.promote import decline, is_open, objections

_PATIENCE_S = 7 * 24 * 3600
"""Seconds to wait for an answer; then the run fails, and `dreamgym promote` still works."""


class Approval(RunInput):
    """Form that asks whether a policy becomes champion."""

    approve: bool = False
    """True makes it champion; False declines it, and the champion stays."""
    name: str
    """Name of the person who decides, for the ledger."""
    reason: str = ""
    """Reason for the decision, for the ledger."""


def needs_approval(summary: dict[str, Any]) -> bool:
    """Return whether a judged run waits for a person's approval."""
    gate = summary["gate"]
    if not gate or not summary["recipe"]["gate"]["needs_approval"] or objections(gate):
        return False
    return is_open(restored(summary["lineage"]["dream"]), restored(gate["report"]))


def was_suspended() -> bool:
    """Return whether the present flow run was suspended before and has resumed.

    Prefect does not count this as another run of it.
    """
    present = present_flow_run()
    return present is not None and bool(present.empirical_policy.pause_keys)


def ask(summary: dict[str, Any]) -> str:
    """Suspend this flow run until a person answers, then promote or decline; return the outcome in one line.

    On resuming, the whole flow runs again, so it must arrive here with the same summary: another verdict needs a new answer.
    """
    report = restored(summary["gate"]["report"])
    gain = with_interval(summary["gate"]["gain"])
    question = f"{summary['run_id']} passed its gate with a real gain of {gain}. Shall its policy become champion?"
    answer = suspend_flow_run(
        wait_for_input=Approval.with_initial_data(description=question),
        timeout=_PATIENCE_S,
        key=f"gate-{report.sha256[:12]}",
    )
    if answer.approve:
        return promote_judged(summary, PolicyName.DREAM, answer.name)
    decline(restored(summary["lineage"]["dream"]), report, answer.name, answer.reason)
    return f"declined by {answer.name}: {answer.reason or 'no reason given'}"
