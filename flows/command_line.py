"""Command line. Arguments are parsed before any heavy import, so `--help` answers at once.

Exit codes: 0 done, 1 failed, 2 bad recipe or input, 3 evaluated but refused by the gate.
"""

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.stage import Stage
from schemas.errors import DreamGymError, InputError
from schemas.policies import PolicyName
from schemas.records import Origin

if TYPE_CHECKING:
    from schemas.recipes.recipe import Recipe

_INTERRUPTED = 130
"""Exit code that typer uses for Ctrl-C."""

app = typer.Typer(
    name="dreamgym",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

RecipeName = Annotated[str, typer.Argument(help="A shipped recipe by name, or a TOML file.", metavar="RECIPE")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="Change a field: section.field=value.", metavar="A.B=C")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
RunName = Annotated[
    str | None,
    typer.Argument(help="A run's id, the start of one, @latest or @champion; empty: the latest.", metavar="RUN"),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dreamgym {version('dreamgym')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train agents inside a learnt experience model, prove the gain in the real environment."""


@app.command()
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
    from flows.planning.check_services import require_services
    from flows.planning.load_recipe import load_recipe

    loaded = load_recipe(recipe, changes or [])
    require_services(loaded)
    with redirect_stdout(sys.stderr):  # libraries print to stdout, which is reserved for the result
        record = _run(loaded, only, again=again)
    if as_json:
        print_json(_with_steps(record))
    elif not record.get("nothing_new"):
        from flows.reports.show_run import print_results

        print_results(record)
    if not record.get("nothing_new") and record["gate"] and not record["gate"]["passed"]:
        raise typer.Exit(3)


def _run(recipe: "Recipe", until: Stage, *, again: bool) -> dict[str, Any]:
    """Begin and execute a run.

    Prefect's server starts in parallel to the imports; if nothing is new, it ends with the command.
    """
    _open_prefect()
    from flows.planning.require_methods import require_methods
    from flows.running.begin_run import begin_run
    from infra.tracking.progress import Display
    from schemas.runs import Trigger

    require_methods(recipe)
    display = Display()
    begun = begin_run(recipe, until, Trigger.HAND, display.say, again=again)
    if not begun.nothing_new:
        from flows.running.run_recipe import work_on

        return work_on(begun, until, display)
    display.say(begun.nothing_new_told)
    return {**begun.record, "nothing_new": True}


def _with_steps(record: dict[str, Any]) -> dict[str, Any]:
    """Return a run's record with its steps and whether each was executed or taken over."""
    from infra.storage.run_records import steps_of

    return {**record, "steps": steps_of(record["run_id"])["steps"]}


@app.command()
def runs(as_json: AsJson = False) -> None:
    """List the runs of this home: when and why they started, and how they ended."""
    from flows.runs.list_runs import print_runs, run_rows

    rows = run_rows()
    print_json(rows) if as_json else print_runs(rows)


@app.command()
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

    told = explanation(find_run(run, finished=False), find_run(other, finished=False) if other else None)
    print_json(told) if as_json else print_explanation(told)


@app.command()
def check(recipe: RecipeName, changes: Changes = None, as_json: AsJson = False) -> None:
    """Validate a recipe; print it resolved, with the plan and its cost. Starts nothing."""
    from flows.planning.load_recipe import load_recipe

    loaded = load_recipe(recipe, changes or [])  # before the slow imports: report mistakes at once
    _embed()
    from flows.planning.foresee import foresee
    from flows.planning.plan import (
        estimate_of,
        plan_of,
        print_plan,
        require_memory,
        seen_by_the_gate,
    )
    from flows.planning.require_methods import require_methods
    from flows.runs.extent import seconds_last_time
    from infra.engines.endpoint import require_endpoint
    from infra.settings import settings

    require_methods(loaded)
    plan, seconds, left, seen = plan_of(loaded), seconds_last_time(loaded), foresee(loaded), seen_by_the_gate(loaded)
    estimate = estimate_of(loaded, plan)
    if as_json:
        resolved = loaded.model_dump(mode="json")
        found = estimate if isinstance(estimate, str) else asdict(estimate)
        known = {"plan": plan, "seconds_last_time": seconds, "estimate": found}
        ahead = {"taken_over": asdict(left) if left else None, "gate_power": asdict(seen)}
        print_json({"recipe": resolved, "digest": loaded.digest, **known, **ahead})
    else:
        print_plan(loaded, plan, seconds, estimate, left, seen)
    require_endpoint(settings(), loaded.endpoint_models)
    require_memory(loaded, estimate)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods that a recipe can name, by port."""
    from flows.planning.list_methods import known_methods, print_methods

    known = known_methods()
    print_json(known) if as_json else print_methods(known)


@app.command()
def ingest(
    source: Annotated[Path, typer.Argument(help="A file of logs, or a folder of such files.", metavar="LOGS")],
    mapping: Annotated[Path | None, typer.Option(help="TOML: what the logs say where (README, Your own logs).")] = None,
    to: Annotated[Path | None, typer.Option(help="Folder for the transitions; empty: in this home.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is understood of three episodes, and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read agent logs as transitions for a recipe's ingest.path.

    Accepts chats, OpenAI messages, traces of OpenTelemetry or MLflow, and transitions.
    """
    from rich.console import Console

    from flows.ingest_logs import ingest_logs, load_mapping, print_converted, require_understood, show_samples
    from infra.settings import settings

    told, console = load_mapping(mapping), Console(stderr=as_json)
    num_shown = show_samples(source, told, console)
    if dry_run:
        require_understood(num_shown, source)
        return
    folder = to or settings().home / "logs" / source.resolve().stem
    converted = ingest_logs(source, told, folder, console)
    require_understood(converted.num_rows, source)
    print_json({"folder": str(folder), **converted.model_dump()}) if as_json else print_converted(
        converted, folder, console
    )


@app.command()
def show(run: RunName = None, as_json: AsJson = False) -> None:
    """Show results and lineage of a run: data, experience model, policy, report and verdict."""
    from flows.reports.show_run import print_lineage, print_results
    from flows.runs.find_run import find_run

    summary = find_run(run)
    if as_json:
        print_json(summary)
        return
    print_results(summary)
    print_lineage(summary)


@app.command()
def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two runs or more, by the starts of their ids, @latest or @champion.", metavar="A B [C...]"
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option(help="The last so many runs on one page, in place of A and B.", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: what differs in recipe and data, results with paired differences, cost; also as an HTML page."""
    if last is not None:
        from flows.reports.compare_nights import nights, page_of_nights, print_nights

        shown = nights(last)
        page = page_of_nights(shown)
        print_json(shown) if as_json else print_nights(shown, page)
        return
    from flows.reports.compare_runs import comparison, page_of, print_comparison
    from flows.runs.find_run import find_run

    if runs is None or len(runs) < 2:
        raise InputError("compare needs two runs or more, or --last 30: `dreamgym runs` lists them")
    table = comparison([find_run(run) for run in runs])
    page = page_of(table)
    print_json(table) if as_json else print_comparison(table, page)


@app.command()
def export(
    run: Annotated[
        str,
        typer.Argument(
            help="A run's id, or the start of one; `champion`: the policy in force.", metavar="RUN|champion"
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Where to: a folder that is new or empty.", metavar="DIR")],
    policy: Annotated[
        PolicyName | None, typer.Option(help="Which policy of the run; the one that its gate judged if not given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a policy as a Hugging Face folder with a model card: `AutoModelForCausalLM.from_pretrained` loads it."""
    from flows.runs.find_policy import find_policy
    from infra.files.whole_folder import require_empty

    found = find_policy(run, policy)  # before the slow imports: report mistakes at once
    require_empty(folder)
    from flows.promotion.export import export_policy

    export_policy(found, folder)
    written = {"folder": str(folder), "policy": found.title, "sha256": found.reference.sha256}
    print_json(written) if as_json else typer.echo(f"{found.title} is in {folder}: README.md says how to load it")


@app.command()
def promote(
    run: RunName = None,
    policy: Annotated[
        PolicyName | None, typer.Option(help="dream or sim-to-real; the best that the gate lets through if not given.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Even if it was rolled back before.")] = False,
) -> None:
    """Judge a policy of a run against today's champion, and make it champion if the gate lets it through."""
    from flows.runs.find_run import find_run

    summary = find_run(run)
    _embed()
    from flows.promotion.promote_run import promote_run
    from infra.tracking.progress import Display

    typer.echo(promote_run(summary, policy, Display(), again=again))


@app.command()
def rollback(
    run: Annotated[
        str | None,
        typer.Argument(
            help="The run whose champion comes back, by the start of its id; empty: the one before the present one.",
            metavar="RUN",
        ),
    ] = None,
    *,
    reason: Annotated[str, typer.Option(help="Why, for the ledger.", prompt=True)],
    yes: Annotated[bool, typer.Option("--yes", help="Even if it leaves no champion, without asking.")] = False,
) -> None:
    """Restore the previous champion, or an earlier one."""
    from flows.runs.find_run import find_run

    earlier = find_run(run) if run else None
    _embed()
    from flows.promotion.promote_run import roll_back_champion
    from tasks.judging.promote import leaves_no_champion

    if not (earlier or yes) and leaves_no_champion():
        _confirm("There was no champion before this one: a rollback leaves none. Go on?")
    typer.echo(roll_back_champion(reason, earlier))


@app.command()
def history(as_json: AsJson = False) -> None:
    """List every judgement, promotion and rollback, oldest first."""
    from flows.reports.show_history import history_rows, print_history

    rows = history_rows()
    print_json(rows) if as_json else print_history(rows)


@app.command()
def trajectories(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Only episodes that this run played: its id, the start of one, @latest or @champion.", metavar="RUN"
        ),
    ] = None,
    *,
    task: Annotated[str, typer.Option(help="Text that the task id or instruction contains.")] = "",
    origin: Annotated[Origin | None, typer.Option(help="Only real or only dreamt episodes.")] = None,
    success: Annotated[bool | None, typer.Option("--success/--failure", help="Only episodes that ended so.")] = None,
    round: Annotated[int | None, typer.Option(help="Only this round.")] = None,
    as_of: Annotated[
        str | None, typer.Option(help="Only what was stored at a tag: RUN-logs, RUN-dream-3.", metavar="TAG")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many episodes.", min=1)] = 3,
    as_json: AsJson = False,
) -> None:
    """Browse stored episodes: states, actions, reasoning, rewards, retrieved demonstrations."""
    from flows.reports.browse_trajectories import browse, print_episodes
    from flows.runs.find_run import find_run

    run_id = find_run(run, finished=False)["run_id"] if run else None
    episodes = browse(run_id=run_id, task=task, origin=origin, success=success, round=round, as_of=as_of, limit=limit)
    print_json(episodes) if as_json else print_episodes(episodes)


@app.command()
def ui(
    mlflow_port: Annotated[int, typer.Option(help="Port of the MLflow page.")] = 5000,
    prefect_port: Annotated[int, typer.Option(help="Port of the Prefect page.")] = 4200,
) -> None:
    """Serve the MLflow and Prefect pages for this home's stores, on loopback, until Ctrl-C."""
    _embed()
    from flows.services.ui import serve_ui

    serve_ui(mlflow_port, prefect_port)


@app.command()
def serve(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An experience model or a run, by the start of digest or id; empty: the latest.",
            metavar="MODEL_OR_RUN",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Others than loopback need a token in DREAMGYM_SERVE_TOKEN.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Of the server.", min=1, max=65_535)] = 8_000,
    max_sessions: Annotated[int, typer.Option(help="How many may play at a time.", min=1)] = 128,
) -> None:
    """Serve an experience model as an environment that others train in (OpenEnv), until Ctrl-C."""
    from flows.planning.check_serving import find_dream, require_place

    summary = find_dream(name)
    require_place(host, port)
    _embed()
    from flows.services.serve_experience_model import serve as serve_dream

    serve_dream(summary, host, port, max_sessions)


@app.command()
def up(
    prefect_port: Annotated[int | None, typer.Option(help="Of the Prefect page and API; 4200 at first.")] = None,
    mlflow_port: Annotated[int | None, typer.Option(help="Of the MLflow page and API; 5000 at first.")] = None,
    s3_port: Annotated[int | None, typer.Option(help="Of the object server, which uses the 40 above, too.")] = None,
    postgres_port: Annotated[int | None, typer.Option(help="Of PostgreSQL; 5433 at first.")] = None,
) -> None:
    """Start this home's servers, on loopback: PostgreSQL, S3-compatible objects, Prefect, MLflow, a worker."""
    from flows.services.servers import start_servers

    start_servers(prefect=prefect_port, mlflow=mlflow_port, s3=s3_port, postgres=postgres_port)


@app.command()
def down() -> None:
    """Stop the servers that `up` started; stored data stays."""
    from flows.services.servers import stop_servers

    stop_servers()


@app.command()
def deploy(recipe: RecipeName, changes: Changes = None) -> None:
    """Register the nightly run and its companion deployments for a recipe on the Prefect server."""
    from flows.planning.load_recipe import load_recipe

    loaded = load_recipe(recipe, changes or [])
    _embed()
    from flows.planning.require_methods import require_methods
    from flows.services.deploy import deploy as register

    require_methods(loaded)

    register(loaded)


@app.command()
def maintain(
    keep_days: Annotated[
        int, typer.Option(help="Age up to which results and unpinned table versions stay.", min=1)
    ] = 30,
) -> None:
    """Compact tables; remove old versions and results, and objects that no run, champion or result refers to."""
    from flows.services.maintenance import tidy_up

    typer.echo(tidy_up(keep_days))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check whether recipes can run here: versions, disk, stores, servers, clocks and secrets."""
    from flows.services.doctor import examine, print_findings

    examined = examine()
    print_json(examined) if as_json else print_findings(examined)
    if not all(one["fine"] for one in examined):
        raise typer.Exit(1)


def _confirm(question: str) -> None:
    """Ask a person at a terminal, and abort unless they agree.

    Raises:
        InputError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise InputError(f"{question} Nobody is at a terminal to answer: say so with --yes")
    typer.confirm(question, abort=True)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, default=str))


def _open_prefect() -> None:
    """Prepare Prefect for commands that run flows."""
    from infra.orchestration.embedded_prefect import open_prefect
    from infra.settings import settings

    open_prefect(settings())


def _embed() -> None:
    """Apply the settings of embedded Prefect, before Prefect is imported."""
    from infra.orchestration.embedded_prefect import embed_prefect
    from infra.settings import settings

    embed_prefect(settings())


def main() -> None:
    """Run the command line; print known errors as one line and exit with their code."""
    try:
        app()
    except DreamGymError as error:
        typer.echo(f"error: {' '.join(str(error).splitlines())}", err=True)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        typer.echo("interrupted; run the same command again to go on from the last finished step", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(
            f"error: {error.strerror or error}: {error.filename or 'unknown file'}. Free space or fix permissions, then run again",
            err=True,
        )
        sys.exit(1)
