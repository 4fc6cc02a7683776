"""Run a flow of the loop; what it needs and an earlier run removed to save space is made again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from infra.context import run_context, set_run_context
from schemas.errors import RemovedError


def run_flow(flow: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a flow returns.

    A finished task is not run again for a result that was removed to save space. Where a later task asks for it, for
    example for the state of an optimiser where a run leaves the path of an earlier one, the flow begins anew, and each such
    task runs again. All others are taken over, dreams among them.

    Args:
        flow: Flow to run.
        arguments: Arguments of the flow.
    """
    steps = run_context().steps.steps
    num_steps = len(steps)
    try:
        return flow(*arguments)
    except RemovedError as error:
        run_context().display.say(f"{error}, and is needed: it is made again")
        set_run_context(replace(run_context(), remakes_removed=True))
        del steps[num_steps:]
        return flow(*arguments)
