"""Command that judges dreams."""

from typing import Annotated

import typer

from flows.commands.application import AsJson, RunName, app, examples, print_json


@app.command(epilog=examples("dreamgym judge @latest", "dreamgym judge @champion --model my-judge"))
def judge(
    run: RunName = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The judge, a model at DREAMGYM_ENDPOINT_URL; if not given, the experience model of the run, if it is a chat.",
            metavar="NAME",
        ),
    ] = None,
    num_transitions: Annotated[
        int, typer.Option(help="How many dreamt transitions; as many with a real replay are judged beside them.", min=1)
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """Judge dreamt transitions of a run by the rubric of the paper.

    Consistency, diversity, informativeness and hallucination are scored from 0 to 2; higher is better.
    """
    from flows.planning.check_judge import endpoint_judge
    from flows.runs.find_run import find_run

    record = find_run(run)
    name = endpoint_judge(record, model)  # before the slow imports: report mistakes at once
    from flows.reports.show_rubric import print_rubric
    from flows.running.run_in_process import judge_in_process

    judged = judge_in_process(record, name, num_transitions)
    print_json(judged) if as_json else print_rubric(judged)
