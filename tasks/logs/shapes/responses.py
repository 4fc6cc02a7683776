"""Items of OpenAI's Responses: calls, their outputs and reasoning are items beside messages."""

from tasks.logs.shapes.in_words import Message, as_text, call_of

ITEMS = ("function_call", "function_call_output", "reasoning")


def shaped(message: Message) -> list[Message] | None:
    """Return an item as a message; None if it is a message, or no item that is known."""
    kind = message.get("type")
    if kind == "function_call":
        return [
            {"role": "assistant", "content": "", "tool_calls": [call_of(message["name"], message.get("arguments"))]}
        ]
    if kind == "function_call_output":
        return [{"role": "tool", "content": as_text(message.get("output"))}]
    if kind == "reasoning" and "role" not in message:
        thought = as_text(message.get("summary") or message.get("content"))
        return [{"role": "assistant", "content": "", "reasoning": thought}]
    return None
