"""Conversation of a trace of MLflow in JSON: of its model call with the most messages, sent and answered."""

import json
from typing import Any

from tasks.logs.shapes.in_words import as_text


def is_trace(record: dict[str, Any]) -> bool:
    """Return whether a record is a trace of MLflow."""
    return {"info", "data"} <= record.keys()


def conversation_in(trace: dict[str, Any]) -> dict[str, Any]:
    """Return the conversation of an MLflow trace, with its tags, metadata and assessments.

    Raises:
        ValueError: no span is a model call.
    """
    info = trace["info"]
    found = [_called(span["attributes"]) for span in trace["data"]["spans"]]
    messages = max(found, key=len, default=[])
    if not messages:
        raise ValueError("no span of the trace is a call of a model")
    judged = {one["assessment_name"]: _judgement(one) for one in info.get("assessments", [])}
    said = {"trajectory_id": info.get("trace_id", info.get("request_id", "")), "messages": messages}
    return {**said, "tags": info.get("tags", {}), "metadata": info.get("trace_metadata", {}), **judged}


def _judgement(assessment: dict[str, Any]) -> Any:
    kinds = (assessment.get(kind, {}) for kind in ("feedback", "expectation"))
    return next((kind["value"] for kind in kinds if "value" in kind), None)


def _called(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a span if it is a model call; MLflow stores its attributes as JSON."""
    values = {name: json.loads(value) if isinstance(value, str) else value for name, value in attributes.items()}
    if values.get("mlflow.spanType") not in ("CHAT_MODEL", "LLM"):
        return []
    sent, answered = values.get("mlflow.spanInputs") or {}, values.get("mlflow.spanOutputs") or {}
    return [*sent.get("messages", []), *_answers(answered)]


def _answers(answered: Any) -> list[dict[str, Any]]:
    if not isinstance(answered, dict):
        return [{"role": "assistant", "content": as_text(answered)}] if answered else []
    if "choices" in answered:
        return [answered["choices"][0]["message"]]
    return [answered] if "role" in answered else answered.get("messages", [])
