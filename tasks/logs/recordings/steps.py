"""Steps of reinforcement learning: rows with the name of their episode, or the steps of an episode in one record."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text, call_of

TITLE, SPANS_FILES = "Steps of reinforcement learning", False

_SEEN = ("observation", "obs", "state", "observations")
_NEXT = ("next_observation", "next_obs", "next_state")
_DONE = ("action", "act", "tool_calls", "model_output")
_THOUGHT = ("thought", "reasoning", "think")
_EPISODE = ("episode_id", "episode", "trajectory_id", "traj_id", "rollout_id", "task_id")
_NUMBER = ("step", "step_id", "step_number", "timestep", "t", "turn")
_ENDED = ("terminated", "done", "is_done")
_LISTS = ("steps", "trajectory", "transitions", "history", "traj")


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a step with the name of its episode, or holds a list of steps."""
    return (_is_step(record) and _first(record, _EPISODE) is not None) or _steps_in(record) is not None


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return a row as a part of its episode; a record with steps is an episode."""
    return [(WHOLE, record)] if _steps_in(record) else [(str(_first(record, _EPISODE)), record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the conversation, with the reward of each step; an episode whose last step did not end it was stopped."""
    name, steps = _steps_in(parts[0]) or ("", parts)
    steps = _in_order(steps)
    first, last = steps[0], steps[-1]
    ended, about = _first(last, _ENDED), {**first, **(parts[0] if name else {})}
    fields = {key: one for key, one in about.items() if key not in (name, *_SEEN, *_DONE, "reward", "truncated")}
    verdict = {key: last[key] for key in ("success", "is_success", "truncated") if last.get(key) is not None}
    rewards = (
        {"reward": [one["reward"] for one in steps]} if all(_is_number(one.get("reward")) for one in steps) else {}
    )
    stopped = {"truncated": True} if ended is False else {}
    given = {"reward": parts[0]["reward"]} if name and _is_number(parts[0].get("reward")) else {}
    yield Recorded(list(_messages(steps)), {**fields, **verdict, **stopped, **rewards, **given})


def _messages(steps: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    for step in steps:
        yield {"role": "user", "content": as_text(_first(step, _SEEN))}
        yield {"role": "assistant", **_said(_first(step, _DONE)), "reasoning": as_text(_first(step, _THOUGHT))}
    if (after := _first(steps[-1], _NEXT)) is not None:
        yield {"role": "user", "content": as_text(after)}


def _said(action: Any) -> dict[str, Any]:
    """Return an action as calls if it is one, or a list of some; else in words."""
    calls = action if isinstance(action, list) else [action]
    if calls and all(isinstance(one, dict) and "name" in one for one in calls):
        return {
            "content": "",
            "tool_calls": [call_of(one["name"], one.get("arguments", one.get("args"))) for one in calls],
        }
    return {"content": as_text(action)}


def _steps_in(record: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the steps in a record and the name of their field."""
    for name in _LISTS:
        found = record.get(name)
        if isinstance(found, list) and found and all(map(_is_step, found)):
            return name, found
    return None


def _is_step(value: Any) -> bool:
    return isinstance(value, dict) and _first(value, _SEEN) is not None and _first(value, _DONE) is not None


def _in_order(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(steps, key=lambda one: _first(one, _NUMBER)) if all(map(_numbered, steps)) else steps


def _numbered(step: Mapping[str, Any]) -> bool:
    return _is_number(_first(step, _NUMBER))


def _first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
