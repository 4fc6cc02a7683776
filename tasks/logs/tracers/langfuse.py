"""Conversation of a trace of Langfuse, as its API returns it: of the generation with the most messages, sent and answered."""

from typing import Any

from tasks.logs.shapes.in_words import as_text


def is_trace(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace of Langfuse with its observations."""
    observations = record.get("observations")
    return isinstance(observations, list) and any(map(_is_generation, observations))


def conversation_in(trace: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation of a trace, with its metadata, and its scores by name.

    Raises:
        ValueError: no generation holds messages.
    """
    found = [_called(one) for one in trace["observations"] if _is_generation(one)]
    messages = max(found, key=len, default=[])
    if not messages:
        raise ValueError("no generation of the trace holds messages")
    scores = {one["name"]: one.get("value") for one in trace.get("scores") or []}
    metadata = trace.get("metadata") or {}
    return {"trajectory_id": trace.get("id", ""), "messages": messages, "metadata": metadata, **scores}


def _is_generation(observation: Any) -> bool:
    return isinstance(observation, dict) and observation.get("type") == "GENERATION"


def _called(generation: dict[str, Any]) -> list[dict[str, Any]]:
    sent, answered = generation.get("input"), generation.get("output")
    if isinstance(sent, dict):  # some clients record the whole request
        sent = sent.get("messages")
    listed = sent if isinstance(sent, list) else [{"role": "user", "content": as_text(sent)}] if sent else []
    return [*listed, *_answers(answered)]


def _answers(answered: Any) -> list[dict[str, Any]]:
    if isinstance(answered, list):
        return answered
    if isinstance(answered, dict) and "role" in answered:
        return [answered]
    return [{"role": "assistant", "content": as_text(answered)}] if answered else []
