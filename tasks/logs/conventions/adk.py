"""Google's Agent Development Kit: requests and responses of Gemini as JSON, which are empty in spans of tools."""

import json
from typing import Any

from tasks.logs.conventions.requests import answered_in, sent_in
from tasks.logs.shapes.in_words import Message

_REQUEST, _RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
NAMES = (_REQUEST, _RESPONSE)


def sent(attributes: dict[str, Any]) -> list[Message]:
    """Return what a model was sent.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it is malformed.
    """
    return sent_in(json.loads(attributes.get(_REQUEST, "{}")))


def answered(attributes: dict[str, Any]) -> list[Message]:
    """Return what a model answered; raises as `sent`."""
    return answered_in(json.loads(attributes.get(_RESPONSE, "{}")))
