"""JSON in the answers of chat models, which surround it with thoughts, fences and words."""

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Form = TypeVar("Form", bound=BaseModel)

_THOUGHT = re.compile(r"^.*?</think>", re.DOTALL)


def without_thought(text: str) -> tuple[str, str]:
    """Return what an answer thinks before it answers, and the answer. The opening tag may be missing."""
    thought = _THOUGHT.match(text)
    if not thought:
        return "", text
    return thought.group().removesuffix("</think>").strip().removeprefix("<think>").strip(), text[thought.end() :]


def read_json(form: type[Form], text: str) -> Form | None:
    """Return the JSON object of an answer; None if it has none of this form."""
    _, answer = without_thought(text)
    first, last = answer.find("{"), answer.rfind("}")
    try:
        return form.model_validate_json(answer[first : last + 1])
    except ValidationError:
        return None
