"""Parts of messages: values in words, and calls of tools."""

import json
from typing import Any

Message = dict[str, Any]
_MEDIA = ("image", "screenshot", "audio", "video", "document")
"""Words in the types of blocks that are no text."""


def as_text(value: Any) -> str:
    """Return a value in words: text as it is, blocks of text one after the other, everything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(one, dict) and "text" in one for one in value):
        return "\n".join(str(one["text"]) for one in value)
    return json.dumps(value, ensure_ascii=False)


def content_of(value: Any) -> Any:
    """Return what a tool returned as the content of a message: blocks of text and media as they are, all else in words."""
    blocks = value if isinstance(value, list) else [value]
    return blocks if any(map(_is_media, blocks)) else as_text(value)


def _is_media(block: Any) -> bool:
    return isinstance(block, dict) and any(word in str(block.get("type")) for word in _MEDIA)


def call_of(name: str, arguments: Any) -> dict[str, Any]:
    """Return a call of a tool in OpenAI's shape, whose arguments are a record or a text."""
    return {"function": {"name": name, "arguments": {} if arguments is None else arguments}}


def decoded(value: Any) -> Any:
    """Return the value that a text is JSON of; a text that is none stays as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{", '"'):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
