"""Messages of all kinds in OpenAI's shape: role, content, tool_calls and reasoning."""

from collections.abc import Iterable

from tasks.logs.shapes import anthropic, gemini, langchain, responses, sharegpt
from tasks.logs.shapes.in_words import Message

_KNOWN = (responses.shaped, sharegpt.shaped, gemini.shaped, anthropic.shaped, langchain.shaped)


def in_openai_shape(messages: Iterable[Message]) -> list[Message]:
    """Return messages as OpenAI writes them, in their order; one message may become several, and most stay as they are."""
    return [one for message in messages for one in _shaped(message)]


def _shaped(message: Message) -> list[Message]:
    if "role" in message and isinstance(message.get("content"), str) and "lc" not in message:
        return [message]  # most are: a text from somebody
    return next((found for known in _KNOWN if (found := known(message)) is not None), [message])
