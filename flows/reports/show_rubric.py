"""Print the scores of a run's dreams by the rubric."""

from typing import Any

from rich.console import Console
from rich.table import Table


def print_rubric(judged: dict[str, Any]) -> None:
    """Print the mean of each dimension, what was not judged, and whether the judge sees which predictions hold."""
    console = Console(highlight=False)
    console.print(f"dreamt transitions of {judged['run_id']}, judged by {judged['judge']}")
    if judged["scores"]:
        console.print(_scores(judged["scores"]))
    console.print(
        f"{judged['num_judged']} of {judged['num_drawn']} drawn transitions have scores; "
        f"unreadable answers: {judged['num_unreadable']}, transitions without a prediction: {judged['num_broken']}"
    )
    console.print(_agreement(judged["replays"]))


def _scores(scores: dict[str, dict[str, float]]) -> Table:
    table = Table(title="Scores from 0 to 2; higher is better")
    for heading in ("dimension", "mean", "95% interval"):
        table.add_column(heading, justify="left" if heading == "dimension" else "right")
    for name, one in scores.items():
        table.add_row(name.replace("_", " "), f"{one['mean']:.2f}", f"{one['low']:.2f} to {one['high']:.2f}")
    return table


def _agreement(replays: dict[str, Any]) -> str:
    """Return in a sentence how the judge scores predictions whose truth is known by a real replay."""
    unread = f"; further unreadable answers: {replays['num_unreadable']}" if replays["num_unreadable"] else ""
    held, wrong = replays["num_held"], replays["num_wrong"]
    if not held and not wrong:
        return f"agreement with replays is not known: no judged transition has a stored real replay{unread}"
    counts = f"{held} judged transitions that hold when they are replayed for real, {wrong} that do not"
    if "difference" not in replays:
        return f"agreement with replays is not known, as one kind is missing: {counts}{unread}"
    difference = replays["difference"]
    return (
        f"agreement with replays: mean score {replays['held']['mean']:.2f} of {held} that hold for real and "
        f"{replays['wrong']['mean']:.2f} of {wrong} that do not, difference {difference['mean']:+z.2f} "
        f"(95% {difference['low']:+z.2f} to {difference['high']:+z.2f}){unread}"
    )
