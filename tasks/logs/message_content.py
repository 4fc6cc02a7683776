"""Content of one message of a log: text, calls of tools, and reasoning.

Messages of ShareGPT and AgentTraj have `from` and `value`, OpenAI's have `role`, `content` and `tool_calls`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from schemas.recipes.log_mapping import MessageMapping

SYSTEM_ROLES = ("system", "developer")
"""Roles of messages that set an agent up, and are no part of its episode."""
AGENT_ROLES = MessageMapping().agent
ANSWER_ROLES = ("tool", "function")
"""Roles of messages that answer a call of a tool."""
_OTHERWISE = {"ipython": "tool"}
"""Roles in the words of some templates."""
_REASONING = ("reasoning_content", "reasoning")
"""Fields of a message in which servers of reasoning models say what was thought."""
USUAL_ACTION = r"(?is)\bact(?:ion)?\s*:\s*(.+)"
"""Action in the words of an agent that was asked for a thought and an action, as in AgentTraj and AgentInstruct."""
USUAL_COMMAND = r"(?s)```(?:bash|sh|mswea_bash_command)\n(.*?)\n?```"
"""Action in the words of an agent that was asked for a command in a fence, as by mini-swe-agent."""
_CLOSING = "</think>"
_THOUGHT = re.compile(r"\s*(?:<think>)?((?:(?!<think>).)*?)</think>\s*", re.DOTALL)
"""Thought between tags; templates that begin it themselves leave only the closing one."""


def role_of(message: dict[str, Any]) -> str:
    """Return who a message is from, in small letters."""
    role = str(message.get("role", message.get("from", "")))
    return _OTHERWISE.get(role, role if role.islower() else role.lower())


def text_in(message: dict[str, Any]) -> str:
    """Return the text of a message, without its reasoning; a part that is no text, as an image, is a mark."""
    content = message.get("content")
    if content and isinstance(content, str):  # as most are
        return content
    content = next((message[name] for name in ("content", "value", "text") if message.get(name) is not None), None)
    if not content and isinstance(error := message.get("error"), dict):  # as inspect records a tool that failed
        return str(error.get("message", ""))
    if isinstance(content, list):
        return "\n".join(_text_of_part(part) for part in content if not _is_thought(part))
    return "" if content is None else str(content)


def has_other_parts(message: dict[str, Any]) -> bool:
    """Return whether a message has parts that are no text."""
    content = message.get("content")
    return isinstance(content, list) and not all(_is_thought(part) or _is_text(part) for part in content)


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if _is_text(part):
        return part["text"]
    kinds = [part.get("type"), part.get("kind"), *part] if isinstance(part, dict) else []
    return f"[{next(filter(None, kinds), 'part')}]"


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and (isinstance(part.get("thinking"), str) or part.get("type") == "redacted_thinking")


def said_and_done(message: dict[str, Any], pattern: str, what: str) -> tuple[str, str]:
    """Return the thought and the action of an agent's message: its tool calls, or else its text.

    A thought is reasoning in a field or a part of its own, between think tags, before the action that the pattern finds,
    or the text beside tool calls.
    """
    calls = calls_in(message)
    inner, text = _thought_and_rest(text_in(message))
    match = re.search(pattern, text) if pattern and not calls else None
    action = taken("; ".join(map(_call, calls)) if calls else text, pattern, what)
    words = text if calls else text[: match.start()] if match else ""
    thoughts = (*reasoning_in(message), inner, words)
    return "\n".join(one.strip() for one in thoughts if one.strip()), action


def _thought_and_rest(text: str) -> tuple[str, str]:
    """Return what stands between leading think tags, and the rest of a text."""
    thought = _THOUGHT.match(text) if _CLOSING in text else None
    return (thought[1], text[thought.end() :]) if thought else ("", text)


def calls_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tool calls of a message, each with name and arguments."""
    functions = [_function(one) for one in message.get("tool_calls") or []]
    older = message.get("function_call")  # OpenAI's older format, with a single call
    return [*functions, older] if older else functions


def _function(call: dict[str, Any]) -> dict[str, Any]:
    """Return the name and arguments of a call, which some formats have beside its id and others inside it."""
    inner = call.get("function") or call.get("custom")
    if isinstance(inner, dict):
        return inner if "arguments" in inner else {**inner, "arguments": inner.get("input")}
    return {"name": inner or call["name"], "arguments": call.get("arguments", call.get("args"))}


def reasoning_in(message: dict[str, Any]) -> Iterator[str]:
    """Yield the reasoning of a message that is no part of its text."""
    content = message.get("content")
    parts = content if isinstance(content, list) else ()
    yield from (part["thinking"] for part in parts if isinstance(part, dict) and isinstance(part.get("thinking"), str))
    yield from (message[name] for name in _REASONING if isinstance(message.get(name), str))


def _call(function: dict[str, Any]) -> str:
    """Format a call as `name(city="Paris", days=2)`; arguments that are no record stand as they are."""
    arguments = function.get("arguments") or {}
    try:
        values = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return f"{function['name']}({arguments})"
    if not isinstance(values, dict):
        return f"{function['name']}({json.dumps(values, ensure_ascii=False)})"
    written = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    return f"{function['name']}({', '.join(written)})"


def taken(text: str, pattern: str, what: str) -> str:
    """Return the part of a text that a pattern finds; without a pattern, all of it.

    Raises:
        ValueError: the pattern finds nothing.
    """
    match = re.search(pattern, text) if pattern else None
    if pattern and match is None:
        raise ValueError(f"no {what}")
    return (match[1] if match else text).strip()
