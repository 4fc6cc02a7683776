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
from tasks.logs.clean_text import clean, remark_on
from tasks.logs.shapes.openai_shape import in_openai_shape

_REASONING = ("reasoning_content", "reasoning")
"""Fields of a message in which servers of reasoning models say what was thought."""
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)
_NEVER_COUNT = ("system", "developer")
_LISTS = ("messages", "conversations", "traj", "trajectory", "history", "contents")
_ENDS = ("exit",)
"""Roles of messages that only say that the agent has stopped."""
EMPTY, GREETING = "messages of the agent without content, which were left out", "greetings before anything was seen"
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
    remarks: tuple[str, ...] = ()
    """Changes that were made to what the messages say."""


class _Turns:
    """Turns of a conversation as its messages come."""

    def __init__(self, mapping: MessageMapping) -> None:
        self._mapping = mapping
        self.seen, self.actions, self.thoughts = list[str](), list[str](), list[str]()
        self._was_call = False
        self.remarks: list[str] = []

    def observe(self, text: str, what: str, *, of_tool: bool) -> None:
        said = _taken(self._cleaned(text), self._mapping.observation, what)
        if len(self.seen) == len(self.actions):
            self.seen.append(said)
        elif said or of_tool:
            self.seen[-1] = f"{self.seen[-1]}\n{said}"

    def act(self, message: dict[str, Any], what: str) -> None:
        if not (_calls(message) or _text(message).strip() or any(_reasoning(message))):
            self.remarks.append(EMPTY)
        elif not self.seen:
            self.remarks.append(GREETING)
        else:
            self._add(*_said_and_done(message, self._mapping.action, what), is_call=bool(_calls(message)))

    def _add(self, thought: str, action: str, *, is_call: bool) -> None:
        """Add an action; several messages of an agent in a row are one turn, whose words before a call are its thought."""
        thought, action = without_template(thought).strip(), self._cleaned(action)
        if len(self.actions) == len(self.seen):
            if is_call and not self._was_call:
                thought = f"{self.thoughts[-1]}\n{self.actions[-1]}\n{thought}"
            else:
                thought, action = (
                    f"{self.thoughts[-1]}\n{thought}",
                    f"{self.actions[-1]}{'; ' if is_call else chr(10)}{action}",
                )
            self.actions.pop()
            self.thoughts.pop()
        self.actions.append(action.strip())
        self.thoughts.append(thought.strip())
        self._was_call = is_call

    def _cleaned(self, text: str) -> str:
        self.remarks += [remark] if (remark := remark_on(text)) else []
        return clean(text)


def conversation_of(messages: Sequence[dict[str, Any]], mapping: MessageMapping) -> Conversation:
    """Return the turns of a conversation.

    Raises:
        ValueError: there are no turns, or a role or a message is not understood.
    """
    turns = _Turns(mapping)
    counting = [one for one in messages if _role(one) not in _NEVER_COUNT][mapping.skip :]
    for number, message in enumerate(in_openai_shape(counting), mapping.skip + 1):
        role = _role(message)
        if role in _NEVER_COUNT:
            continue
        if role in mapping.agent or (role == "assistant" and _calls(message)):
            turns.act(message, f"action in message {number}")
        elif role in mapping.environment:
            turns.observe(_text(message), f"observation in message {number}", of_tool=role != "user")
        elif role not in _ENDS:
            raise ValueError(f"role {role!r} of message {number} is neither the agent's nor the environment's")
    if not turns.actions:
        raise ValueError("it has no message of an agent")
    ends = [THE_END] if len(turns.seen) == len(turns.actions) else []
    return Conversation(
        [*turns.seen, *ends], turns.actions, turns.thoughts, remarks=tuple(dict.fromkeys(turns.remarks))
    )


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
    """Return the list of messages of a record, if it has one; `prompt` and `completion` are one list."""
    if at:
        found = _listed(value_at(record, at))
        return found if isinstance(found, list) else None
    for name in _LISTS:
        if _are_messages(found := _listed(record.get(name))):
            return found
    parts = [_listed(record.get(name)) for name in ("prompt", "completion")]
    return [*parts[0], *parts[1]] if all(map(_are_messages, parts)) else None


def _listed(value: Any) -> Any:
    """Return a value; a list that is written as JSON in a text as what it is."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _are_messages(value: Any) -> bool:
    return (
        bool(value)
        and isinstance(value, list)
        and all(isinstance(one, dict) for one in value)
        and any(map(_speaks, value))
    )


def _speaks(message: dict[str, Any]) -> bool:
    return bool({"role", "from", "lc"} & message.keys()) or message.get("type") in ("human", "ai", "function_call")


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
    content = next((message[name] for name in ("content", "value", "text") if message.get(name) is not None), None)
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
    """Return the tool calls of a message, each with name and arguments."""
    functions = [_function(one) for one in message.get("tool_calls") or []]
    older = message.get("function_call")  # OpenAI's older format, with a single call
    return [*functions, older] if older else functions


def _function(call: dict[str, Any]) -> dict[str, Any]:
    """Return the name and arguments of a call, which some formats have beside its id and others inside it."""
    inner = call.get("function")
    return (
        inner
        if isinstance(inner, dict)
        else {"name": inner or call["name"], "arguments": call.get("arguments", call.get("args"))}
    )


def _reasoning(message: dict[str, Any]) -> Iterator[str]:
    """Yield the reasoning of a message that is no part of its text."""
    content = message.get("content")
    yield from (part["thinking"] for part in content if _is_thought(part)) if isinstance(content, list) else ()
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
    return f"{function['name']}({', '.join(f'{key}={json.dumps(value, ensure_ascii=False)}' for key, value in values.items())})"


def _taken(text: str, pattern: str, what: str) -> str:
    match = re.search(pattern, text) if pattern else None
    if pattern and match is None:
        raise ValueError(f"no {what}")
    return (match[1] if match else text).strip()
