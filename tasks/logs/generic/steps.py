"""Steps of reinforcement learning: rows with the name of their episode, or the steps of an episode in one record."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tasks.logs.generic.columns import episodes_of_columns, steps_of_columns
from tasks.logs.generic.step_fields import (
    DONE,
    ENDED,
    REWARD,
    SEEN,
    first,
    is_last_sight,
    is_only_sight,
    is_step,
    messages_of,
    number_of,
    up_to_ends,
)
from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.verdicts import as_number, as_success

TITLE, SPANS_FILES = "Steps of reinforcement learning", False

_EPISODE = ("episode_id", "ep_id", "episode", "trajectory_id", "traj_id", "rollout_id", "task_id", "demo")
_REPEATS = ("trial", "attempt", "run", "run_id", "seed", "env_id", "worker", "sample", "epoch")
"""Fields that tell episodes of one name apart."""
_UNNAMED = "rows"
_LISTS = ("steps", "trajectory", "transitions", "history", "traj")
_ASKED = ("instruction", "task", "goal", "question", "problem_statement")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a step with the name of its episode or how it ended, or holds a list of steps."""
    is_named = any(first(record, names) is not None for names in (_EPISODE, ENDED))
    return ((is_step(record) or is_last_sight(record)) and is_named) or _steps_in(record) is not None


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return a row as a part of its episode, or of its file; a record with steps is an episode, or several as columns."""
    if several := episodes_of_columns(record):
        return [(WHOLE, one) for one in several]
    name = first(record, _EPISODE)
    return [(WHOLE if _steps_in(record) else _UNNAMED if name is None else str(name), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversations, with the reward of each step; an episode whose last step did not end it was stopped.

    Rows that name no episode are one up to the row that ends it. Those of one name are several where something else tells
    them apart, or where their numbers begin anew. One that lacks a step or an action is refused.

    Raises:
        ValueError: rows are of several episodes, and nothing tells these apart.
    """
    name, steps = _steps_in(parts[0]) or ("", parts)
    if name:
        yield _whole(parts[0], name, steps)
        return
    is_named = first(parts[0], _EPISODE) is not None
    for some in _repeats_of(parts) if is_named else up_to_ends(parts):
        yield _whole({}, "", some)


def _repeats_of(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    repeats: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        repeats.setdefault(tuple(str(row.get(name)) for name in _REPEATS), []).append(row)
    for some in repeats.values():
        numbers = [number_of(row) for row in some]
        is_one = None not in numbers and len({*numbers}) == len(some)
        several = [some] if is_one else list(up_to_ends(some))
        if len({number_of(one[0]) for one in several}) > 1:
            raise ValueError("its steps stand twice, and nothing tells its episodes apart")
        yield from several


def _whole(record: dict[str, Any], name: str, steps: list[dict[str, Any]]) -> Recorded:
    """Return an episode of steps in any order, or why there is none; see _episode."""
    try:
        return _episode(record, name, _in_order(steps))
    except ValueError as error:
        return Recorded([], {"steps": steps}, reason=str(error))


def _episode(record: dict[str, Any], name: str, steps: list[dict[str, Any]]) -> Recorded:
    """Return an episode of steps.

    Args:
        record: Record that holds them; empty: they are rows.
        name: Field of the record with the steps.
        steps: Steps in their order.

    Raises:
        ValueError: a step has no action.
    """
    ended, about = first(steps[-1], ENDED), dict[str, Any]()
    for one in (steps[0], steps[-1], record):
        about |= {key: value for key, value in one.items() if value is not None}
    steps = _without_last_sight(steps)
    fields = {key: one for key, one in about.items() if key not in (name, *SEEN, *DONE, *REWARD)}
    each = [one for step in steps if (one := as_number(first(step, REWARD))) is not None]
    rewards = {"reward": each} if len(each) == len(steps) else {}
    stopped = {"truncated": True} if as_success(ended) is False else {}
    given = {"reward": record["reward"]} if as_number(record.get("reward")) is not None else {}
    asked = str(first(about, _ASKED) or "")
    return Recorded(list(messages_of(steps, asked)), {**fields, **stopped, **rewards, **given})


def _without_last_sight(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps without a last row in which nothing was done: it has what the last action led to, and its reward.

    In such rows a reward is that of the action before them.

    Raises:
        ValueError: nothing was done in another row.
    """
    if any(map(is_last_sight, steps[:-1])):
        raise ValueError("a step amid it has no action")
    if len(steps) < 2:
        return steps
    if is_only_sight(steps[-1]):
        return [*steps[:-2], {**steps[-2], "next_observation": first(steps[-1], SEEN)}]
    if not is_last_sight(steps[-1]):
        return steps
    after = [{"reward": first(one, REWARD), "next_observation": first(one, SEEN)} for one in steps[1:]]
    return [
        {**{key: one for key, one in step.items() if key not in REWARD}, **led}
        for step, led in zip(steps, after, strict=False)
    ]


def _steps_in(record: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the steps in a record and the name of their field."""
    for name in _LISTS:
        found = record.get(name)
        if isinstance(found, list) and found and all(map(is_step, found[:-1])) and _ends(found):
            return name, found
    return steps_of_columns(record)


def _ends(steps: list[Any]) -> bool:
    """Return whether the last of a list is a step, or what was seen after a step before it."""
    return is_step(steps[-1]) or (len(steps) > 1 and isinstance(steps[-1], dict) and is_last_sight(steps[-1]))


def _in_order(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps by number, if all have one.

    Raises:
        ValueError: one is missing.
    """
    numbers = [one for one in map(number_of, steps) if one is not None]
    if len(numbers) < len(steps):
        return steps
    ordered = sorted(numbers)
    distances = {after - before for before, after in pairwise(ordered)}
    if 1 in distances and len(distances) > 1 and max(distances) > 1:
        missing = next(before + 1 for before, after in pairwise(ordered) if after - before > 1)
        raise ValueError(f"step {missing:g} is missing")
    return [one for _, one in sorted(zip(numbers, steps, strict=True), key=lambda pair: pair[0])]
