"""Browse stored episodes in the terminal."""

from collections import defaultdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel

from infra.settings import settings
from infra.storage.replay_store import ReplayStore
from schemas.state_text import changes_between

_COLUMNS = (
    "trajectory_id",
    "task_id",
    "instruction",
    "turn",
    "state",
    "thought",
    "action",
    "reasoning",
    "next_state",
    "origin",
    "real_reward",
    "dream_reward",
    "done",
    "success",
    "failure",
    "demonstrations",
    "source",
    "run",
    "round",
)


def browse(
    *,
    run_id: str | None,
    task: str,
    origin: str | None,
    success: bool | None,
    round: int | None,
    as_of: str | None,
    limit: int,
) -> list[dict[str, Any]]:
    """Return up to `limit` matching episodes, each with its turns in order.

    Episodes that a run took over belong to the run that played them.
    """
    rows = ReplayStore(settings()).read("transitions", _where(run_id, origin, round), _COLUMNS, as_of)
    episodes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if task in row["task_id"] or task in row["instruction"]:
            episodes[row["trajectory_id"]].append(row)
    found: list[dict[str, Any]] = []
    for name, turns in episodes.items():
        turns.sort(key=lambda row: row["turn"])
        if success is None or turns[-1]["success"] == success:
            found.append({"trajectory_id": name, "turns": turns})
        if len(found) == limit:
            break
    return found


def _where(run_id: str | None, origin: str | None, round: int | None) -> str | None:
    """Return a filter for the store; values are quoted."""
    named = {"run": run_id, "origin": origin}
    conditions = [f"{column} = {_quoted(value)}" for column, value in named.items() if value]
    if round is not None:
        conditions.append(f"round = {round:d}")
    return " and ".join(conditions) or None


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def print_episodes(episodes: list[dict[str, Any]]) -> None:
    """Print each episode as a panel; dreams are labelled as dreams."""
    console = Console()
    for episode in episodes:
        first, last = episode["turns"][0], episode["turns"][-1]
        outcome = "success" if last["success"] else last["failure"] or "no success"
        title = f"{first['origin']} | {first['task_id']} | {first['source']} | round {first['round']} | {outcome}"
        body = [escape(first["instruction"]), escape(first["state"]), *map(_turn, episode["turns"])]
        console.print(Panel("\n".join(body), title=escape(title)))
    console.print(
        f"{len(episodes)} episodes; filter with a run's id, --task, --origin, --success/--failure, --round, --limit"
    )


def _turn(row: dict[str, Any]) -> str:
    reward = row["dream_reward"] if row["origin"] == "dream" else row["real_reward"]
    thought = row.get("thought")
    lines = [f"[italic]{escape(thought)}[/]"] if thought else []
    lines.append(f"[bold]> {escape(row['action'])}[/]")
    lines += [f"  [dim]retrieved:{escape(demo)}[/]" for demo in row["demonstrations"]]
    lines.append(f"  [italic]{escape(row['reasoning'])}[/]")
    lines.append(
        "  " + escape(changes_between(row["state"], row["next_state"]).replace("\n", "\n  ") or "nothing changed")
    )
    return "\n".join(lines) + f"\n  reward {reward}{', done' if row['done'] else ''}"
