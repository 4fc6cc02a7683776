"""Commands that show results."""

from typing import Annotated

import typer

from flows.commands.application import AsJson, RunName, app, examples, print_json
from schemas.errors import InputError


@app.command(epilog=examples("dreamgym show @champion --json"))
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


@app.command(epilog=examples("dreamgym compare @champion @latest", "dreamgym compare --last 30"))
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
def history(as_json: AsJson = False) -> None:
    """List every judgement, promotion and rollback, oldest first."""
    from flows.reports.show_history import history_rows, print_history

    rows = history_rows()
    print_json(rows) if as_json else print_history(rows)
