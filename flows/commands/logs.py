"""Commands for logs and stored episodes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.application import AsJson, app, examples, print_json
from schemas.records import Origin


@app.command(epilog=examples("dreamgym init my-agent --logs logs/", "dreamgym init shop --environment my-shop"))
def init(
    name: Annotated[str, typer.Argument(help="Name of the recipe, which is written to NAME.toml here.")],
    logs: Annotated[
        Path | None, typer.Option(help="Logs of your agent: a file, or a folder of such files.", metavar="LOGS")
    ] = None,
    environment: Annotated[
        str, typer.Option(help="Real environment, built in or of another package; empty: logs alone.")
    ] = "",
    model: Annotated[
        str, typer.Option(help="A folder, a GGUF file, a shipped name or a hub id; empty: a small network of the logs.")
    ] = "",
    revision: Annotated[str, typer.Option(help="Commit of a hub model.")] = "",
    success: Annotated[
        bool | None, typer.Option("--success/--failure", help="Outcome of all episodes, if the logs do not say it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented recipe for logs, an environment or both, and say what to run next.

    Without either, it asks on a terminal.
    """
    from rich.console import Console

    from flows.logs.init_recipe import Wishes, init_recipe

    console = Console(stderr=as_json)
    wishes = Wishes(name, logs, environment, model, revision, success)
    file = init_recipe(wishes, console, may_ask=sys.stdin.isatty() and not as_json)
    print_json({"recipe": str(file)}) if as_json else console.print(
        f"{file} is written. Next:", f"  dreamgym check {file}", f"  dreamgym run {file}", sep="\n", markup=False
    )


@app.command(epilog=examples("dreamgym ingest logs/ --dry-run"))
def ingest(
    source: Annotated[Path, typer.Argument(help="A file of logs, or a folder of such files.", metavar="LOGS")],
    mapping: Annotated[
        Path | None,
        typer.Option(
            help="TOML: what the logs say where. Keys: format, episodes_at, joined_by, file_is_episode, names, paths, constants, success_from, success_otherwise, state_line, states, messages."
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Folder for the transitions; empty: in this home.")] = None,
    success: Annotated[
        bool | None, typer.Option("--success/--failure", help="Outcome of all episodes, if the logs do not say it.")
    ] = None,
    draft: Annotated[
        Path | None,
        typer.Option(help="Write the mapping in use to this file, with comments, and stop.", metavar="TOML"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is understood of three episodes, and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read agent logs as transitions for a recipe's ingest.path.

    Accepts chats, traces, sessions of coding agents, and steps (flows/README.md, Your own logs). Without a verdict in them,
    it asks for one on a terminal.
    """
    from rich.console import Console

    from flows.logs import ingest_logs as logs

    console = Console(stderr=as_json)
    given = logs.with_verdict(logs.load_mapping(mapping), success)
    log_mapping, found = logs.understood(source, given, console, may_ask=sys.stdin.isatty() and not as_json)
    if draft:
        logs.write_draft(log_mapping, found, draft)
        print_json({"source": str(source), "mapping": str(draft)}) if as_json else console.print(
            f"next: correct {draft}, then dreamgym ingest {source} --mapping {draft}", markup=False, soft_wrap=True
        )
        return
    if dry_run:
        logs.require_understood(found, source)
        if as_json:
            print_json({"source": str(source), "episodes_understood": len(found.taken)})
        return
    folder = to or logs.folder_for(source)
    converted = logs.ingest_logs(source, log_mapping, folder, console)
    logs.require_understood(converted, source)
    print_json({"folder": str(folder), **converted.model_dump()}) if as_json else logs.print_converted(
        converted, folder, console
    )


@app.command(epilog=examples("dreamgym trajectories @latest --origin dream --failure"))
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


@app.command(epilog=examples("dreamgym quarantine --reason 'no JSON'"))
def quarantine(
    reason: Annotated[str, typer.Option(help="Text that the reason contains.")] = "",
    limit: Annotated[int, typer.Option(help="How many examples of each reason.", min=0)] = 3,
    as_json: AsJson = False,
) -> None:
    """Show what was refused of logs and other episodes, and why."""
    from flows.reports.show_quarantine import print_quarantined, quarantined_by_reason

    groups = quarantined_by_reason(reason, limit)
    print_json(groups) if as_json else print_quarantined(groups)
