"""Commands that plan and run recipes."""

import json
import shlex
from typing import Annotated, Any

import typer

from flows.commands.application import (
    AsJson,
    Changes,
    RecipeName,
    RunName,
    app,
    embed_prefect_here,
    examples,
    print_json,
)
from flows.stage import Stage


@app.command(
    epilog=examples("dreamgym run textworld-tiny", "dreamgym run mine.toml --set rl.advantage.name=gigpo --only dream")
)
def run(
    recipe: RecipeName,
    changes: Changes = None,
    only: Annotated[Stage, typer.Option(help="Stop after this stage.")] = Stage.REAL,
    again: Annotated[bool, typer.Option("--again", help="Run the next seed, also where nothing is new.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a recipe if there is a reason to, or resume an interrupted run of it.

    New or changed logs, another recipe, and code or packages that change numbers are reasons. Without one, the command
    says so and ends.
    """
    from flows.planning.load_recipe import load_recipe
    from flows.running.run_in_process import run_in_process

    record = run_in_process(load_recipe(recipe, changes or []), only, again=again)
    if as_json:
        print_json(_with_steps(record))
    elif not record.get("nothing_new"):
        from flows.reports.show_run import print_results

        print_results(record)
    if not record.get("nothing_new") and record["gate"] and not record["gate"]["passed"]:
        raise typer.Exit(3)


def _with_steps(record: dict[str, Any]) -> dict[str, Any]:
    """Return a run's record with its steps and whether each was executed or taken over."""
    from infra.storage.run_records import steps_of

    return {**record, "steps": steps_of(record["run_id"])["steps"]}


@app.command(epilog=examples("dreamgym check alfworld-tiny --set seed=1"))
def check(
    recipe: RecipeName,
    changes: Changes = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="Print the whole recipe, with all defaults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say whether a recipe can run here, how long it takes, what it costs and what is missing. Starts nothing.

    Exits with 2 if something is missing.
    """
    from flows.planning.check_services import on_this_machine
    from flows.planning.load_recipe import load_recipe

    loaded = on_this_machine(load_recipe(recipe, changes or []))  # before the slow imports: report mistakes at once
    embed_prefect_here()
    from flows.planning.check_recipe import check_recipe, print_check
    from flows.planning.require_methods import require_methods

    require_methods(loaded)
    checked = check_recipe(loaded)
    if as_json:
        print_json(checked.plain())
    elif resolved:
        print_json(loaded.model_dump(mode="json"))
    else:
        print_check(checked, shlex.join(["dreamgym", "run", recipe, *_as_typed(changes)]))
    checked.require_ready()


def _as_typed(changes: list[str] | None) -> list[str]:
    return [part for change in changes or [] for part in ("--set", change)]


_CHAT_PROMPTS = ("policy.template=chat", "policy.remember_episode=false")


@app.command(epilog=examples("dreamgym evaluate textworld-tiny --model smollm2-135m --set policy.template=chat"))
def evaluate(
    recipe: RecipeName,
    model: Annotated[
        str, typer.Option(help="A folder, a GGUF file, a shipped name, or a hub id; with --endpoint, its name there.")
    ],
    endpoint: Annotated[
        str,
        typer.Option(
            help="Address of an OpenAI-compatible endpoint that has the model; DREAMGYM_ENDPOINT_API_KEY is sent to it.",
            metavar="URL",
        ),
    ] = "",
    against: Annotated[
        str | None, typer.Option(help="A run: dream in its experience model, compare with its policies.", metavar="RUN")
    ] = None,
    changes: Changes = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate any model, as it is, on the pinned test tasks of a recipe: for real, and in the dream of a run.

    A hub id needs its commit: --set backbone.revision=...
    """
    from flows.planning.load_recipe import load_recipe

    backbone = [f"backbone.model={json.dumps(model)}", "backbone.scratch=false"]
    chosen = [*_CHAT_PROMPTS, *(changes or [])] if endpoint else [*(changes or []), *backbone]
    chosen.append("evaluation.panel=pinned")
    loaded = load_recipe(recipe, chosen)  # before the slow imports: report mistakes at once
    from flows.reports.show_evaluation import print_evaluation
    from flows.running.run_in_process import evaluate_in_process
    from flows.runs.find_run import find_run

    place = (endpoint, model) if endpoint else None
    found = evaluate_in_process(loaded, find_run(against) if against else None, place)
    print_json(found) if as_json else print_evaluation(found)


@app.command()
def recipes(as_json: AsJson = False) -> None:
    """List the shipped recipes, with the hardware and the time that they take."""
    from flows.planning.list_recipes import print_recipes, shipped_recipes

    shipped = shipped_recipes()
    print_json(shipped) if as_json else print_recipes(shipped)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods that a recipe can name, by port."""
    from flows.planning.list_methods import known_methods, print_methods

    known = known_methods()
    print_json(known) if as_json else print_methods(known)


@app.command()
def runs(as_json: AsJson = False) -> None:
    """List the runs of this home: when and why they started, and how they ended."""
    from flows.runs.list_runs import print_runs, run_rows

    rows = run_rows()
    print_json(rows) if as_json else print_runs(rows)


@app.command(epilog=examples("dreamgym why @latest"))
def why(
    run: RunName = None,
    other: Annotated[
        str | None, typer.Argument(help="Compare with this run; empty: the one of the recipe before.", metavar="OTHER")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a run was started, and for each step which input differed: recipe field, code, package, data, setting."""
    from flows.runs.explain_run import explanation, print_explanation
    from flows.runs.find_run import find_run

    explained = explanation(find_run(run, finished=False), find_run(other, finished=False) if other else None)
    print_json(explained) if as_json else print_explanation(explained)
