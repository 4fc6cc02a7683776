"""Run a recipe, evaluate a model or judge dreams in this process; slow imports wait until the arguments are checked."""

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from flows.planning.check_services import on_this_machine, require_services
from flows.stage import Stage
from infra.orchestration.embedded_prefect import open_prefect
from infra.running.interrupts import restored_interrupts
from schemas.recipes.recipe import Recipe
from schemas.runs import Record, Trigger

if TYPE_CHECKING:
    from infra.progress.progress import Display


def run_in_process(recipe: Recipe, until: Stage, display: "Display | None" = None, *, again: bool = False) -> Record:
    """Begin a run of a recipe if there is a reason to, or resume an interrupted one; return its record.

    Args:
        recipe: Recipe to run.
        until: Last stage to run.
        display: Shows progress; None: on standard error.
        again: Run the next seed without another reason.

    Raises:
        InputError: the recipe names a method or a service that is not there.
        StorageError: a store or a server cannot be used.
    """
    recipe = on_this_machine(recipe)
    require_services(recipe)
    with restored_interrupts(), redirect_stdout(sys.stderr):  # libraries print to stdout, which is for the result
        open_prefect()  # the server starts in parallel to these imports; those of the flow wait until it has work
        from flows.planning.require_methods import require_methods
        from flows.running.begin_run import begin_run
        from infra.progress.progress import Display

        require_methods(recipe)
        display = display or Display()
        begun = begin_run(recipe, until, Trigger.HAND, display.say, again=again)
        if begun.nothing_new:
            return begun.left_as_it_is(display.say)
        from flows.running.run_recipe import work_on

        return work_on(begun, until, display)


def evaluate_in_process(
    recipe: Recipe, against: Record | None, endpoint: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Evaluate a recipe's backbone as it is, or a model at an endpoint, by address and name; see `evaluate_model`.

    Raises:
        InputError: the model cannot be used, or the run was evaluated on other tasks.
        StorageError: a store or a server cannot be used.
    """
    recipe = on_this_machine(recipe)
    require_services(recipe)
    with restored_interrupts(), redirect_stdout(sys.stderr):
        open_prefect()
        from flows.running.evaluate_model import EndpointModel, evaluate_model
        from infra.progress.progress import Display

        return evaluate_model(recipe, against, Display(), EndpointModel(*endpoint) if endpoint else None)


def judge_in_process(record: Record, model: str, num_transitions: int) -> dict[str, Any]:
    """Judge the dreams of a run by the rubric; see `judge_dreams`.

    Raises:
        EngineError: the endpoint refuses, or does not answer.
        StorageError: a store or a server cannot be used.
    """
    with restored_interrupts(), redirect_stdout(sys.stderr):
        open_prefect()
        from flows.running.judge_dreams import judge_dreams
        from infra.progress.progress import Display

        return judge_dreams(record, model, num_transitions, Display())
