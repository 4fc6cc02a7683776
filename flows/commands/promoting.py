"""Commands for the champion: export, promote, roll back."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.application import AsJson, RunName, app, embed_prefect_here, examples, print_json
from schemas.errors import InputError
from schemas.policies import PolicyName


@app.command(epilog=examples("dreamgym export champion my-agent"))
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
    merge: Annotated[
        bool, typer.Option(help="Merge adapters into the weights, or write them as files of their own.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Write a policy as a Hugging Face folder with a model card: `AutoModelForCausalLM.from_pretrained` loads it."""
    from flows.runs.find_policy import find_policy
    from infra.files.whole_folder import require_empty

    found = find_policy(run, policy)  # before the slow imports: report mistakes at once
    require_empty(folder)
    from flows.promotion.export import export_policy

    export_policy(found, folder, merge=merge)
    written = {"folder": str(folder), "policy": found.title, "sha256": found.reference.sha256}
    print_json(written) if as_json else typer.echo(f"{found.title} is in {folder}: README.md says how to load it")


@app.command(epilog=examples("dreamgym promote @latest --policy dream"))
def promote(
    run: RunName = None,
    policy: Annotated[
        PolicyName | None, typer.Option(help="dream or sim-to-real; the best that the gate lets through if not given.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Even if it was rolled back before.")] = False,
    unproven: Annotated[
        bool, typer.Option("--unproven", help="Even though it learnt from logs alone and nothing is proven for real.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge a policy of a run against today's champion, and make it champion if the gate lets it through."""
    from flows.runs.find_run import find_run

    summary = find_run(run)
    embed_prefect_here()
    from flows.promotion.promote_run import promote_run
    from infra.progress.progress import Display

    outcome = promote_run(summary, policy, Display(), again=again, unproven=unproven)
    print_json({"run_id": summary["run_id"], "outcome": outcome}) if as_json else typer.echo(outcome)


@app.command(epilog=examples('dreamgym rollback --reason "worse on real pages"'))
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
    as_json: AsJson = False,
) -> None:
    """Restore the previous champion, or an earlier one."""
    from flows.runs.find_run import find_run

    earlier = find_run(run) if run else None
    embed_prefect_here()
    from flows.promotion.promote_run import roll_back_champion
    from tasks.judging.promote import leaves_no_champion

    if not (earlier or yes) and leaves_no_champion():
        _confirm("There was no champion before this one: a rollback leaves none. Go on?")
    outcome = roll_back_champion(reason, earlier)
    print_json({"reason": reason, "outcome": outcome}) if as_json else typer.echo(outcome)


def _confirm(question: str) -> None:
    """Ask a person at a terminal, and abort unless they agree.

    Raises:
        InputError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise InputError(f"{question} Nobody is at a terminal to answer: say so with --yes")
    typer.confirm(question, abort=True)
