"""Functions of ShareGPT: a message from `function_call` has name and arguments as JSON."""

import json

from tasks.logs.shapes.in_words import Message, call_of


def shaped(message: Message) -> list[Message] | None:
    """Return a call; None if the message is from somebody else. Text that is no JSON is a call without a name."""
    if message.get("from") != "function_call":
        return None
    try:
        value = json.loads(message["value"])
    except ValueError:
        value = None
    known = value if isinstance(value, dict) and "name" in value else {"name": "", "arguments": message["value"]}
    return [{"role": "assistant", "content": "", "tool_calls": [call_of(known["name"], known.get("arguments"))]}]
