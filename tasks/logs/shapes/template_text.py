"""Conversations that a chat template wrote out as one text: ChatML, Llama 3, Gemma, or names of roles on lines of their own."""

import re

from tasks.logs.shapes.in_words import Message

_TEMPLATES = (
    re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL),
    re.compile(r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|<\|eom_id\|>|\Z)", re.DOTALL),
    re.compile(r"<start_of_turn>(\w+)\n(.*?)(?:<end_of_turn>|\Z)", re.DOTALL),
)
_ROLE = re.compile(r"^(system|user|assistant|tool)\n", re.MULTILINE)
"""Beginning of a turn in text without special tokens."""
_ROLES = {"ipython": "tool"}


def turns_in(text: str) -> list[Message]:
    """Return the messages of a text, without empty ones; none if no template wrote it."""
    turns = next((found for one in _TEMPLATES if (found := one.findall(text))), None)
    if turns is None and _ROLE.match(text.lstrip()):
        _, *parts = _ROLE.split(text)
        turns = zip(parts[::2], parts[1::2], strict=True)
    return [{"role": _ROLES.get(role, role), "content": said.strip()} for role, said in turns or () if said.strip()]
