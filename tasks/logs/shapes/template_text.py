"""Conversations that a chat template wrote out as one text: ChatML, Llama 3, Gemma, Mistral, or names of roles on lines."""

import json
import re
from collections.abc import Iterator

from tasks.logs.shapes.in_words import Message, as_text, call_of, decoded

_TEMPLATES = (
    re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL),
    re.compile(r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n(.*?)(?:<\|eot_id\|>|<\|eom_id\|>|\Z)", re.DOTALL),
    re.compile(r"<start_of_turn>(\w+)\n(.*?)(?:<end_of_turn>|\Z)", re.DOTALL),
)
_ROLE = re.compile(r"^(system|user|assistant|tool)\n", re.MULTILINE)
"""Beginning of a turn in text without special tokens."""
_ROLES = {"ipython": "tool"}
_CALL = "<|python_tag|>"
_MISTRAL = re.compile(r"\[(INST|/INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS|/\w+)\]|</?s>")
"""Token that begins or ends a turn."""


def turns_in(text: str) -> list[Message]:
    """Return the messages of a text, without empty ones; none if no template wrote it."""
    if "[INST]" in text and "[/INST]" in text:
        return list(_of_mistral(text))
    turns = next((found for one in _TEMPLATES if (found := one.findall(text))), None)
    if turns is None and _ROLE.match(text.lstrip()):
        _, *parts = _ROLE.split(text)
        turns = zip(parts[::2], parts[1::2], strict=True)
    return [_message(_ROLES.get(role, role), said.strip()) for role, said in turns or () if said.strip()]


def _message(role: str, said: str) -> Message:
    """Return a turn; a call of Llama's template as one."""
    call = decoded(said.removeprefix(_CALL)) if said.startswith(_CALL) else None
    if not isinstance(call, dict) or "name" not in call:
        return {"role": role, "content": said}
    return {
        "role": role,
        "content": "",
        "tool_calls": [call_of(call["name"], call.get("parameters", call.get("arguments")))],
    }


def _of_mistral(text: str) -> Iterator[Message]:
    """Yield the turns of Mistral's template: what a token begins lasts until the next one."""
    _, *parts = _MISTRAL.split(text)
    for begun_by, said in zip(parts[::2], map(str.strip, parts[1::2]), strict=True):
        if not said or begun_by == "AVAILABLE_TOOLS":
            continue
        if begun_by == "TOOL_CALLS":
            yield {"role": "assistant", "content": "", "tool_calls": [{"function": one} for one in json.loads(said)]}
        elif begun_by == "TOOL_RESULTS":
            yield {"role": "tool", "content": as_text(json.loads(said).get("content"))}
        else:
            yield {"role": "user" if begun_by == "INST" else "assistant", "content": said}
