"""Turns of a conversation: an observation of the environment, and the agent's action.

Messages of ShareGPT and AgentTraj have `from` and `value`, OpenAI's have `role`, `content` and `tool_calls`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.chat import conversation_state
from schemas.recipes.log_mapping import MessageMapping
from schemas.tables import without_template

_REASONING = ("reasoning_content", "reasoning")
"""Fields of a message in which servers of reasoning models say what was thought."""
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)
_NEVER_COUNT = ("system", "developer")
_LISTS = ("messages", "conversations")
THE_END = "the episode ends"
"""Observation after a last action without an answer."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Conversation of an episode."""

    seen: list[str]
    """Observations: one before each action, and one after the last."""
    actions: list[str]
    thoughts: list[str]
    """The agent's own words before each action; empty where it gave none."""
    asked: str = ""
    """First message of the user, where observations are more than that."""


def conversation_of(messages: Sequence[dict[str, Any]], mapping: MessageMapping) -> Conversation:
    """Return the turns of a conversation.

    Raises:
        ValueError: there are no turns, or a role, a message or the order of messages is not understood.
    """
    seen: list[str] = []
    actions, thoughts = list[str](), list[str]()
    counting = [one for one in messages if _role(one) not in _NEVER_COUNT][mapping.skip :]
    for number, message in enumerate(counting, mapping.skip + 1):
        if _role(message) in mapping.agent:
            if len(actions) == len(seen):
                raise ValueError(f"message {number} is an action, and nothing was seen before it")
            thought, action = _said_and_done(message, mapping.action, f"action in message {number}")
            actions.append(action)
            thoughts.append(without_template(thought).strip())
        elif _role(message) in mapping.environment:
            said = _taken(_text(message), mapping.observation, f"observation in message {number}")
            seen = [*seen[:-1], f"{seen[-1]}\n{said}"] if len(seen) > len(actions) else [*seen, said]
        else:
            raise ValueError(
                f"role {_role(message)!r} of message {number} is neither the agent's nor the environment's"
            )
    if not actions:
        raise ValueError("it has no message of an agent")
    return Conversation([*seen, THE_END] if len(seen) == len(actions) else seen, actions, thoughts)


def requests_of(messages: Sequence[dict[str, Any]], mapping: MessageMapping) -> Conversation:
    """Return the turns of a conversation whose observations are all messages before an answer, as states.

    Raises:
        ValueError: nobody answers or asks, or an answer has tool calls, which are no text.
    """
    said = [{"role": _role_in_chats(one, mapping), "content": _text(one)} for one in messages]
    places = [place for place, one in enumerate(said) if one["role"] == "assistant"]
    asked = next((one["content"] for one in said if one["role"] == "user"), "")
    if not places or not asked:
        raise ValueError("it has no message of an agent" if asked else "it has no message of a user")
    if with_calls := [place for place in places if _calls(messages[place])]:
        raise ValueError(f"message {with_calls[0] + 1} has tool calls: an agent loop's policy answers in text")
    seen = [conversation_state(said[:place]) for place in places]
    actions = [said[place]["content"] for place in places]
    return Conversation([*seen, conversation_state(said)], actions, ["" for _ in places], asked)


def _role_in_chats(message: dict[str, Any], mapping: MessageMapping) -> str:
    """Return a role as chat templates name it."""
    role = _role(message)
    others = {**dict.fromkeys(mapping.agent, "assistant"), "human": "user", "developer": "system"}
    return others.get(role, role)


def messages_in(record: dict[str, Any], at: str) -> list[dict[str, Any]] | None:
    """Return the list of messages of a record, if it has one."""
    found = value_at(record, at) if at else next((record[name] for name in _LISTS if record.get(name)), None)
    return found if isinstance(found, list) else None


def value_at(record: Any, path: str) -> Any:
    """Return the value at a dotted path, or None. A name may contain dots itself."""
    names = path.split(".")
    for count in range(len(names), 0, -1):
        inner = _inside(record, ".".join(names[:count]))
        if inner is not None:
            return value_at(inner, ".".join(names[count:])) if count < len(names) else inner
    return None


def _inside(record: Any, name: str) -> Any:
    if isinstance(record, list):
        return record[int(name)] if name.isdigit() and int(name) < len(record) else None
    return record.get(name) if isinstance(record, dict) else None


def _role(message: dict[str, Any]) -> str:
    return str(message.get("role", message.get("from", "")))


def _text(message: dict[str, Any]) -> str:
    content = message.get("content", message.get("value"))
    if isinstance(content, list):
        return "\n".join(_text_of_part(part) for part in content if not _is_thought(part))
    return "" if content is None else str(content)


def _text_of_part(part: Any) -> str:
    if not (isinstance(part, dict) and isinstance(part.get("text"), str)):
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        raise ValueError(f"a message has a part that is not text: {kind}")
    return part["text"]


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("thinking"), str)


def _said_and_done(message: dict[str, Any], pattern: str, what: str) -> tuple[str, str]:
    """Return the thought and the action of an agent's message: its tool calls, or else its text.

    A thought is reasoning in a field or a part of its own, between think tags, before the action that the pattern finds,
    or the text beside tool calls.
    """
    calls = _calls(message)
    inner, text = _thought_and_rest(_text(message))
    match = re.search(pattern, text) if pattern and not calls else None
    action = _taken("; ".join(map(_call, calls)) if calls else text, pattern, what)
    words = text if calls else text[: match.start()] if match else ""
    thoughts = (*_reasoning(message), inner, words)
    return "\n".join(one.strip() for one in thoughts if one.strip()), action


def _thought_and_rest(text: str) -> tuple[str, str]:
    """Return what stands between leading think tags, and the rest of a text."""
    thought = _THOUGHT.match(text)
    return (thought[1], text[thought.end() :]) if thought else ("", text)


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tool calls of a message."""
    functions = [one["function"] for one in message.get("tool_calls") or []]
    older = message.get("function_call")  # OpenAI's older format, with a single call
    return [*functions, older] if older else functions


def _reasoning(message: dict[str, Any]) -> Iterator[str]:
    """Yield the reasoning of a message that is no part of its text."""
    content = message.get("content")
    yield from (part["thinking"] for part in content if _is_thought(part)) if isinstance(content, list) else ()
    yield from (message[name] for name in _REASONING if isinstance(message.get(name), str))


def _call(function: dict[str, Any]) -> str:
    """Format a call as `name(city="Paris", days=2)`."""
    arguments = function.get("arguments") or {}
    values = json.loads(arguments) if isinstance(arguments, str) else arguments
    return f"{function['name']}({', '.join(f'{key}={json.dumps(value, ensure_ascii=False)}' for key, value in values.items())})"


def _taken(text: str, pattern: str, what: str) -> str:
    match = re.search(pattern, text) if pattern else None
    if pattern and match is None:
        raise ValueError(f"no {what}")
    return (match[1] if match else text).strip()
