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
    said, calls, thoughts = list[Any](), list[dict[str, Any]](), list[str]()
    for part in parts:
        if answer := part.get("functionResponse", part.get("function_response")):
            yield {"role": "tool", "content": as_text(answer.get("response"))}
        elif call := part.get("functionCall", part.get("function_call")):
            calls.append(call_of(call["name"], call.get("args")))
        elif part.get("thought"):
            thoughts.append(part.get("text", ""))
        else:
            said.append({"type": "text", **part} if "text" in part else {"type": next(iter(part), "part")})
    if said or calls or thoughts:
        content = "\n".join(one["text"] for one in said) if all("text" in one for one in said) else said
        yield {"role": role, "content": content, "tool_calls": calls, "reasoning": "\n".join(thoughts)}
