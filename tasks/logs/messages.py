"""Messages in a record of a log: where they are."""

from typing import Any

from tasks.logs.shapes.in_words import decoded
from tasks.logs.shapes.openai_shape import is_message

_LISTS = (
    *("messages", "conversations", "traj", "trajectory", "history", "contents"),
    *("conversation", "dialog", "dialogue", "chat_history", "values.messages"),
)


_HALVES = (("prompt", "completion"), ("input.messages", "output.messages"))


def messages_in(record: dict[str, Any], at: str) -> list[dict[str, Any]] | None:
    """Return the list of messages of a record, if it has one; `prompt` and `completion` are one list."""
    if at:
        found = decoded(value_at(record, at))
        return found if isinstance(found, list) else None
    for name in _LISTS:
        if _are_messages(found := decoded(value_at(record, name))):
            return found
    return next(
        (both for names in _HALVES if (both := _joined(*(decoded(value_at(record, one)) for one in names)))), None
    )


def _joined(asked: Any, said: Any) -> list[dict[str, Any]] | None:
    """Return two halves of a conversation as one list, of which one may be a text; None if both are, or are no messages."""
    halves = [
        [{"role": role, "content": half}] if half and isinstance(half, str) else half
        for role, half in (("user", asked), ("assistant", said))
    ]
    has_messages = _are_messages(asked) or _are_messages(said)
    return [*halves[0], *halves[1]] if has_messages and all(map(_are_messages, halves)) else None


def _are_messages(value: Any) -> bool:
    return (
        bool(value)
        and isinstance(value, list)
        and all(isinstance(one, dict) for one in value)
        and any(map(is_message, value))
    )


def value_at(record: Any, path: str) -> Any:
    """Return the value at a dotted path, or None. A name may contain dots itself."""
    if "." not in path:
        return _inside(record, path)
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
