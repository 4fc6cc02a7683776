"""Turns of a conversation: an observation of the environment, and the agent's action."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from schemas.chat import conversation_state
from schemas.recipes.log_mapping import MessageMapping
from tasks.logs.clean_text import clean
from tasks.logs.message_content import (
    SYSTEM_ROLES,
    USUAL_ACTION,
    USUAL_COMMAND,
    calls_in,
    has_other_parts,
    reasoning_in,
    role_of,
    said_and_done,
    taken,
    text_in,
)
from tasks.logs.shapes.openai_shape import in_openai_shape

_ENDS = ("exit",)
"""Roles of messages that only say that the agent has stopped."""
_BREAK = "\n"
THE_BEGINNING, THE_END = "the episode begins", "the episode ends"
"""Observations before a first call that nothing precedes, and after a last action without an answer."""
EMPTY, GREETING = "messages of the agent without content, which were left out", "greetings, which are no actions"
DEMONSTRATIONS = "messages of demonstrations, which were left out"
PARTS = "parts that are no text, as images, which became marks"


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
        said = taken(self._cleaned(text), self._mapping.observation, what)
        if len(self.seen) == len(self.actions):
            self.seen.append(said)
        elif said or of_tool:
            self.seen[-1] = f"{self.seen[-1]}\n{said}"

    def act(self, message: dict[str, Any], what: str) -> None:
        is_call = bool(calls_in(message))
        if not self.seen and is_call:
            self.seen.append(THE_BEGINNING)
        if not (is_call or text_in(message).strip() or any(reasoning_in(message))):
            self.remarks.append(EMPTY)
        elif not self.seen or (not self.actions and not is_call and self._is_greeting(message)):
            self.remarks.append(GREETING)
        else:
            self._add(*said_and_done(message, self._mapping.action, what), is_call=is_call)

    def _is_greeting(self, message: dict[str, Any]) -> bool:
        """Return whether a first message names no action though all others do, or is marked as none, as in AgentInstruct."""
        usual = self._mapping.action
        is_nameless = usual in (USUAL_ACTION, USUAL_COMMAND) and not re.search(usual, text_in(message))
        return is_nameless or message.get("loss") is False

    def _add(self, thought: str, action: str, *, is_call: bool) -> None:
        """Add an action; several messages of an agent in a row are one turn, whose words before a call are its thought."""
        thought, action = self._cleaned(thought).strip(), self._cleaned(action)
        if len(self.actions) == len(self.seen):
            words, before = self.thoughts.pop(), self.actions.pop()
            if is_call and not self._was_call:
                thought = f"{words}\n{before}\n{thought}"
            else:
                thought, action = f"{words}\n{thought}", f"{before}{'; ' if is_call else _BREAK}{action}"
        self.actions.append(action.strip())
        self.thoughts.append(thought.strip())
        self._was_call = is_call

    def _cleaned(self, text: str) -> str:
        cleaned, remarks = clean(text)
        self.remarks += remarks
        return cleaned


def conversation_of(messages: Sequence[dict[str, Any]], mapping: MessageMapping) -> Conversation:
    """Return the turns of a conversation.

    Raises:
        ValueError: there are no turns, or a role or a message is not understood.
    """
    played = [one for one in messages if not one.get("is_demo")]
    counting = in_openai_shape([one for one in played if role_of(one) not in SYSTEM_ROLES][mapping.skip :])
    if not mapping.action:
        usual = (one for one in (USUAL_ACTION, USUAL_COMMAND) if _acts_always(counting, mapping, one))
        mapping = mapping.model_copy(update={"action": next(usual, "")})
    turns = _Turns(mapping)
    turns.remarks += [DEMONSTRATIONS] if len(played) < len(messages) else []
    for number, message in enumerate(counting, mapping.skip + 1):
        role = role_of(message)
        if role in SYSTEM_ROLES:
            continue
        turns.remarks += [PARTS] if has_other_parts(message) else []
        if role in mapping.agent or (role == "assistant" and calls_in(message)):
            turns.act(message, f"action in message {number}")
        elif role in mapping.environment:
            turns.observe(text_in(message), f"observation in message {number}", of_tool=role != "user")
        elif role not in _ENDS:
            raise ValueError(f"role {role!r} of message {number} is neither the agent's nor the environment's")
    if not turns.actions:
        raise ValueError("it has no message of an agent")
    ends = [THE_END] if len(turns.seen) == len(turns.actions) else []
    return Conversation(
        [*turns.seen, *ends], turns.actions, turns.thoughts, remarks=tuple(dict.fromkeys(turns.remarks))
    )


def _acts_always(messages: Sequence[dict[str, Any]], mapping: MessageMapping, usual: str) -> bool:
    """Return whether an agent writes its action in a usual way in all messages; the first may be a greeting."""
    said = [text_in(one) for one in messages if role_of(one) in mapping.agent and not calls_in(one)]
    return all(re.search(usual, text) for text in said[1:]) and any(re.search(usual, text) for text in said)


def requests_of(messages: Sequence[dict[str, Any]], mapping: MessageMapping) -> Conversation:
    """Return the turns of a conversation whose observations are all messages before an answer, as states.

    Raises:
        ValueError: nobody answers or asks, or an answer has tool calls, which are no text.
    """
    cleaned = [clean(text_in(one)) for one in messages]
    said = [
        {"role": _role_in_chats(one, mapping), "content": text}
        for one, (text, _) in zip(messages, cleaned, strict=True)
    ]
    remarks = tuple(dict.fromkeys(remark for _, some in cleaned for remark in some))
    places = [place for place, one in enumerate(said) if one["role"] == "assistant"]
    asked = next((one["content"] for one in said if one["role"] == "user"), "")
    if not places or not asked:
        raise ValueError("it has no message of an agent" if asked else "it has no message of a user")
    if with_calls := [place for place in places if calls_in(messages[place])]:
        raise ValueError(f"message {with_calls[0] + 1} has tool calls: an agent loop's policy answers in text")
    seen = [conversation_state(said[:place]) for place in places]
    actions = [said[place]["content"] for place in places]
    return Conversation([*seen, conversation_state(said)], actions, ["" for _ in places], asked, remarks)


def _role_in_chats(message: dict[str, Any], mapping: MessageMapping) -> str:
    """Return a role as chat templates name it."""
    role = role_of(message)
    others = {**dict.fromkeys(mapping.agent, "assistant"), "human": "user", "developer": "system"}
    return others.get(role, role)
