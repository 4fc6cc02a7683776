"""Contents of Gemini: a message has parts, which are texts, calls of functions, or their responses."""

from collections.abc import Iterator
from typing import Any

from tasks.logs.shapes.in_words import Message, as_text, call_of


def shaped(message: Message) -> list[Message] | None:
    """Return the responses of functions one by one, then texts and calls; None if it is no content of Gemini."""
    parts = message.get("parts")
    if not isinstance(parts, list) or any("type" in part for part in parts):
        return None
    return list(_split(message.get("role", "user"), parts))


def _split(role: str, parts: list[dict[str, Any]]) -> Iterator[Message]:
    texts, calls = list[str](), list[dict[str, Any]]()
    for part in parts:
        if answer := part.get("functionResponse", part.get("function_response")):
            yield {"role": "tool", "content": as_text(answer.get("response"))}
        elif call := part.get("functionCall", part.get("function_call")):
            calls.append(call_of(call["name"], call.get("args")))
        elif "text" in part:
            texts.append(part["text"])
    if texts or calls:
        yield {"role": role, "content": "\n".join(texts), "tool_calls": calls}
