"""Tools that a trace says were executed: results that no model call was sent, and calls that no answer of a model holds.

The agent's last call is mostly of the first kind: its result is known to nobody but the span of the tool. Where only tools
record what they were given, as when messages of models hold no calls, their spans are the agent's actions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.logs.message_content import AGENT_ROLES, ANSWER_ROLES, calls_in, role_of
from tasks.logs.shapes.in_words import Message, as_text, call_of

ACTED = "actions that only the spans of tools know"
_GENAI = "gen_ai.tool."
_CONVENTIONS = (
    (
        ("gen_ai.operation.name", "execute_tool"),
        (f"{_GENAI}name",),
        (f"{_GENAI}call.id",),
        (f"{_GENAI}call.arguments", f"{_GENAI}input", "tool_arguments", "gcp.vertex.agent.tool_call_args"),
        (
            f"{_GENAI}call.result",
            f"{_GENAI}output",
            f"{_GENAI}message",
            "tool_response",
            "gcp.vertex.agent.tool_response",
        ),
    ),
    (("openinference.span.kind", "TOOL"), ("tool.name",), ("tool.id",), ("input.value",), ("output.value",)),
    (
        ("ai.operationId", "ai.toolCall"),
        ("ai.toolCall.name",),
        ("ai.toolCall.id",),
        ("ai.toolCall.args", "ai.toolCall.input"),
        ("ai.toolCall.result", "ai.toolCall.output"),
    ),
)
"""Attribute that makes a span one of a tool, with its value; attributes of name, id, arguments and result."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Execution of a tool."""

    name: str
    id: str
    """Id of the call; empty if it is not known."""
    arguments: Any
    result: Any

    @property
    def answer(self) -> Message:
        """Message with the result."""
        return {"role": "tool", "content": as_text(self.result)}


def tool_run(attributes: dict[str, Any]) -> ToolRun | None:
    """Return the execution that a span's attributes tell of: of the GenAI conventions, or of OpenInference's."""
    for (kind, value), *fields in _CONVENTIONS:
        found = (next((attributes[name] for name in names if name in attributes), None) for names in fields)
        name, id, arguments, result = found
        if attributes.get(kind) == value and name:
            return ToolRun(str(name), str(id or ""), arguments, result)
    return None


def with_tool_runs(messages: list[Message], runs: Sequence[ToolRun]) -> tuple[list[Message], tuple[str, ...]]:
    """Return a conversation with what tools know of it, and remarks.

    Args:
        messages: Messages of the agent's conversation, in OpenAI's shape.
        runs: Executions of tools, in the order of time; of sub-agents', too.
    """
    if any(map(calls_in, messages)):
        return [*_with_results(messages, [one for one in runs if one.result is not None])], ()
    said_by_agent = [one for one in messages if role_of(one) in AGENT_ROLES]
    known = [one for one in runs if one.arguments is not None or one.result is not None]
    if not known or not messages or len(said_by_agent) > 1:
        return messages, ()
    last = messages[-1:] if said_by_agent and messages[-1] is said_by_agent[0] else []
    acted = (part for one in known for part in (_call(one), one.answer))
    return [*messages[: len(messages) - len(last)], *acted, *last], (ACTED,)


def _call(run: ToolRun) -> Message:
    return {"role": "assistant", "content": "", "tool_calls": [call_of(run.name, run.arguments)]}


def _with_results(messages: list[Message], runs: list[ToolRun]) -> Iterator[Message]:
    """Yield messages, and after calls that nobody answers, the results of their tools.

    A call without an id is that of the first run of its tool that no earlier call stands for.
    """
    for message, following in zip(messages, [*messages[1:], {}], strict=True):
        yield message
        calls = zip(message.get("tool_calls") or [], calls_in(message), strict=False)
        taken = [run for call, function in calls if (run := _taken(call.get("id"), function, runs))]
        if role_of(following) not in ANSWER_ROLES:
            yield from (run.answer for run in taken)


def _taken(call_id: Any, function: dict[str, Any], runs: list[ToolRun]) -> ToolRun | None:
    """Remove the run of a call from the list, and return it."""
    id = call_id or function.get("id")
    fits = (one for one in runs if (one.id == id if id and one.id else one.name == function["name"]))
    if run := next(fits, None):
        runs.remove(run)
    return run
