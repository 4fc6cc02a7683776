"""Memories of agents of smolagents: what was observed in a step is what its action led to."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message, as_text

TITLE, SPANS_FILES = "Memories of smolagents", False

_ACTED = ("tool_calls", "model_output")
_TASK, _PLAN = {"task", "task_images"}, {"plan", "model_output_message"}
"""Fields of steps that are no actions."""


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record holds steps of an agent's memory, or is one."""
    steps = record.get("steps")
    has_steps = isinstance(steps, list) and any(isinstance(one, dict) and _is_action(one) for one in steps)
    return has_steps or _is_action(record) or record.keys() == _TASK or record.keys() >= _PLAN


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the memory, which is an episode, or a step as a part of its file."""
    return [(WHOLE if "steps" in record else "memory", record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the task, the actions and what was observed after each as a conversation.

    Raises:
        ValueError: the task is not known.
    """
    memory = parts[0] if "steps" in parts[0] else {"steps": parts}
    task = next((one["task"] for one in (memory, *memory["steps"]) if one.get("task")), None)
    if task is None:
        raise ValueError("neither the record nor a step of it has a task")
    messages = [one for step in memory["steps"] if _is_action(step) for one in _messages(step)]
    fields = {name: value for name, value in memory.items() if name != "steps"}
    yield Recorded([{"role": "user", "content": as_text(task)}, *messages], {**fields, "instruction": as_text(task)})


def _is_action(step: dict[str, Any]) -> bool:
    return "step_number" in step and "observations" in step and any(step.get(name) for name in _ACTED)


def _messages(step: dict[str, Any]) -> list[Message]:
    """Return what the agent did, with its words as reasoning beside calls, and what it observed."""
    words, calls = as_text(step.get("model_output")), step.get("tool_calls")
    acted = {"content": "", "reasoning": words, "tool_calls": calls} if calls else {"content": words}
    return [{"role": "assistant", **acted}, {"role": "user", "content": as_text(step["observations"])}]
