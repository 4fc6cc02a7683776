"""Fields of one step of reinforcement learning, under their usual names, and steps as messages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text
from tasks.logs.verdicts import as_number, as_success

SEEN = ("observation", "obs", "state", "observations", "axtree", "axtree_txt", "clean_html")
NEXT = ("next_observation", "next_obs", "obs_next", "next_state")
DONE = ("action", "act", "tool_calls", "model_output")
REWARD = ("reward", "rew", "r")
ENDED = ("terminated", "done", "is_done", "is_terminal")
_THOUGHT = ("thought", "reasoning", "think")
_NUMBER = ("step", "step_id", "step_number", "timestep", "t", "turn")
_OF_SWE_AGENT = {"thought", "action", "observation", "response"}


def first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first value that is there under one of the names, or None."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def is_step(value: Any) -> bool:
    """Return whether a value is an observation with an action."""
    return isinstance(value, dict) and first(value, SEEN) is not None and first(value, DONE) is not None


def is_last_sight(value: Mapping[str, Any]) -> bool:
    """Return whether a value is what was seen at the end, where nothing was done any more."""
    return first(value, SEEN) is not None and first(value, DONE) is None and bool(set(DONE) & value.keys())


def is_only_sight(step: Mapping[str, Any]) -> bool:
    """Return whether a step of RLDS is what was seen at the end: its reward is no action's, and its own are of theirs."""
    return step.get("is_last") is True and first(step, SEEN) is not None and not first(step, DONE)


def number_of(step: Mapping[str, Any]) -> float | None:
    """Return the number of a step, or None."""
    return as_number(first(step, _NUMBER))


def up_to_ends(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield rows up to each that ends an episode, or after which numbers that repeat begin anew."""
    numbers = [number_of(row) for row in rows]
    repeat = None not in numbers and len({*numbers}) < len(numbers)
    begins = 0
    for place, row in enumerate(rows, 1):
        is_last = place == len(rows) or (repeat and (numbers[place] or 0) <= (numbers[place - 1] or 0))
        if is_last or any(as_success(row.get(name)) for name in (*ENDED, "truncated")):
            yield rows[begins:place]
            begins = place


def messages_of(steps: Sequence[Mapping[str, Any]], asked: str) -> Iterator[Message]:
    """Yield steps as messages of the environment and the agent.

    Args:
        steps: Steps in their order.
        asked: Words with which the episode begins where observations are results of the actions beside them.
    """
    if all(map(_shows_result, steps)):
        yield from [{"role": "user", "content": asked}] if asked else []
        for step in steps:
            yield from (_acted(step), {"role": "tool", "content": as_text(first(step, SEEN))})
        return
    for step in steps:
        yield from ({"role": "user", "content": as_text(first(step, SEEN))}, _acted(step))
    if (after := first(steps[-1], NEXT)) is not None:
        yield {"role": "user", "content": as_text(after)}


def _shows_result(step: Mapping[str, Any]) -> bool:
    """Return whether the observation of a step is what its action led to: ReAct writes thought, action, observation."""
    if first(step, NEXT) is not None or "observation" not in step:
        return False
    places = {name: place for place, name in enumerate(step)}
    is_react = any(places.get(name, len(places)) < places.get("action", 0) for name in _THOUGHT)
    return step.keys() >= _OF_SWE_AGENT or (is_react and places["action"] < places["observation"])


def _acted(step: Mapping[str, Any]) -> Message:
    return {"role": "assistant", **_said(first(step, DONE)), "reasoning": as_text(first(step, _THOUGHT))}


def _said(action: Any) -> dict[str, Any]:
    """Return an action as calls if it is one, or a list of some; else in words."""
    calls = action if isinstance(action, list) else [action]
    if calls and all(isinstance(one, dict) and {"name", "function"} & one.keys() for one in calls):
        return {"content": "", "tool_calls": calls}
    return {"content": as_text(action)}
