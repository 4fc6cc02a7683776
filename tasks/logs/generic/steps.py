"""Steps of reinforcement learning: rows with the name of their episode, or the steps of an episode in one record."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text
from tasks.logs.verdicts import as_number, as_success

TITLE, SPANS_FILES = "Steps of reinforcement learning", False

_SEEN = ("observation", "obs", "state", "observations", "axtree", "axtree_txt", "clean_html")
_NEXT = ("next_observation", "next_obs", "obs_next", "next_state")
_DONE = ("action", "act", "tool_calls", "model_output")
_THOUGHT = ("thought", "reasoning", "think")
_EPISODE = ("episode_id", "ep_id", "episode", "trajectory_id", "traj_id", "rollout_id", "task_id", "demo")
_UNNAMED = "rows"
_NUMBER = ("step", "step_id", "step_number", "timestep", "t", "turn")
_REWARD = ("reward", "rew", "r")
_ENDED = ("terminated", "done", "is_done")
_SEEN_LISTS = ("states", "observations", "obs")
_LISTS = ("steps", "trajectory", "transitions", "history", "traj")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a step with the name of its episode or how it ended, or holds a list of steps."""
    is_named = any(_first(record, names) is not None for names in (_EPISODE, _ENDED))
    return (_is_step(record) and is_named) or _steps_in(record) is not None


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return a row as a part of its episode, or of its file; a record with steps is an episode."""
    name = _first(record, _EPISODE)
    return [(WHOLE if _steps_in(record) else _UNNAMED if name is None else str(name), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation, with the reward of each step; an episode whose last step did not end it was stopped.

    Rows that name no episode are one up to the row that ends it.
    """
    name, steps = _steps_in(parts[0]) or ("", parts)
    if name or _first(parts[0], _EPISODE) is not None:
        yield _episode(parts, name, _in_order(steps))
        return
    for some in _up_to_ends(parts):
        yield _episode(some, "", _in_order(some))


def _up_to_ends(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    begins = 0
    for place, row in enumerate(rows, 1):
        if place == len(rows) or any(as_success(row.get(name)) for name in (*_ENDED, "truncated")):
            yield rows[begins:place]
            begins = place


def _episode(parts: list[dict[str, Any]], name: str, steps: list[dict[str, Any]]) -> Recorded:
    first, last = steps[0], steps[-1]
    ended, about = _first(last, _ENDED), {**first, **(parts[0] if name else {})}
    fields = {key: one for key, one in about.items() if key not in (name, *_SEEN, *_DONE, *_REWARD, "truncated")}
    verdict = {key: last[key] for key in ("success", "is_success", "truncated") if last.get(key) is not None}
    each = [one for step in steps if (one := as_number(_first(step, _REWARD))) is not None]
    rewards = {"reward": each} if len(each) == len(steps) else {}
    stopped = {"truncated": True} if as_success(ended) is False else {}
    given = {"reward": parts[0]["reward"]} if name and as_number(parts[0].get("reward")) is not None else {}
    return Recorded(list(_messages(steps)), {**fields, **verdict, **stopped, **rewards, **given})


def _messages(steps: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    for step in steps:
        yield {"role": "user", "content": as_text(_first(step, _SEEN))}
        yield {"role": "assistant", **_said(_first(step, _DONE)), "reasoning": as_text(_first(step, _THOUGHT))}
    if (after := _first(steps[-1], _NEXT)) is not None:
        yield {"role": "user", "content": as_text(after)}


def _said(action: Any) -> dict[str, Any]:
    """Return an action as calls if it is one, or a list of some; else in words."""
    calls = action if isinstance(action, list) else [action]
    if calls and all(isinstance(one, dict) and {"name", "function"} & one.keys() for one in calls):
        return {"content": "", "tool_calls": calls}
    return {"content": as_text(action)}


def _steps_in(record: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the steps in a record and the name of their field."""
    for name in _LISTS:
        found = record.get(name)
        if isinstance(found, list) and found and all(map(_is_step, found)):
            return name, found
    return _steps_of_lists(record)


def _steps_of_lists(record: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the steps of a list of states and one of actions beside it, which may have one state less."""
    done, name = record.get("actions"), next((one for one in _SEEN_LISTS if isinstance(record.get(one), list)), "")
    if not name or not isinstance(done, list) or len(record[name]) - len(done) not in (0, 1) or not done:
        return None
    steps = [{"observation": seen, "action": action} for seen, action in zip(record[name], done, strict=False)]
    after = {"next_observation": record[name][-1]} if len(record[name]) > len(done) else {}
    return name, [*steps[:-1], steps[-1] | after]


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and _first(value, _SEEN) is not None and _first(value, _DONE) is not None


def _in_order(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    numbers = [one for one in map(_number, steps) if one is not None]
    if len(numbers) < len(steps):
        return steps
    return [one for _, one in sorted(zip(numbers, steps, strict=True), key=lambda pair: pair[0])]


def _number(step: Mapping[str, Any]) -> float | None:
    return as_number(_first(step, _NUMBER))


def _first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)
