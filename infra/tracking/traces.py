"""Sampled rollouts as MLflow traces: an episode is a trace, a turn is a span, and each retrieval is a child span."""

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Span, SpanType

from schemas.records import Origin, Trajectory, Turn

_ROLLOUT_TAG = "rollout"
_MAX_NAME = 60


def trace_rollout(client: MlflowClient, experiment_id: str, run_id: str, episode: Trajectory, name: str) -> None:
    """Write an episode as a trace of an MLflow run, unless it exists.

    Args:
        client: MLflow client.
        experiment_id: Experiment of the MLflow run.
        run_id: MLflow run of the stage that played the episode.
        episode: Real or dreamt episode; the trace's name says which.
        name: Unique name of the rollout within the MLflow run.

    Raises:
        ConnectionError: MLflow did not store the trace.
    """
    tag = f"{run_id}/{name}"
    if _holds(client, experiment_id, tag):
        return
    mlflow.set_tracking_uri(client.tracking_uri)  # traces go to this address, whichever client writes them
    root = client.start_trace(
        f"{episode.origin} rollout of {episode.task.task_id}",
        span_type=SpanType.AGENT,
        inputs=episode.task.instruction,
        tags={_ROLLOUT_TAG: tag, **_facts(episode)},
        experiment_id=experiment_id,
        run_id=run_id,
    )
    for turn in episode.turns:
        _write_turn(client, root, turn, episode.origin)
    client.end_trace(root.trace_id, outputs=_outcome(episode))
    if not _holds(client, experiment_id, tag):
        raise ConnectionError("MLflow did not take the trace of a rollout")


def _facts(episode: Trajectory) -> dict[str, str]:
    return {
        "origin": episode.origin,
        "task_id": episode.task.task_id,
        "success": str(episode.success).lower(),
        "failure": episode.failure or "",
        "num_turns": str(len(episode.turns)),
    }


def _outcome(episode: Trajectory) -> str:
    word = "success" if episode.success else episode.failure or "no success"
    return f"{episode.origin}: {word} after {len(episode.turns)} turns"


def _write_turn(client: MlflowClient, root: Span, turn: Turn, origin: Origin) -> None:
    seen = {"state": turn.state, "action": turn.action}
    span = client.start_span(turn.action[:_MAX_NAME], root.trace_id, root.span_id, span_type=SpanType.TOOL, inputs=seen)
    if turn.step.demonstrations:
        retrieval = client.start_span(
            "retrieve", root.trace_id, span.span_id, span_type=SpanType.RETRIEVER, inputs=seen
        )
        client.end_span(
            root.trace_id, retrieval.span_id, outputs=[{"page_content": text} for text in turn.step.demonstrations]
        )
    answer = {
        "reasoning": turn.step.reasoning,
        "next_state": turn.step.state,
        f"{origin}_reward": turn.step.reward,
        "done": turn.step.done,
    }
    client.end_span(root.trace_id, span.span_id, outputs=answer)


def _holds(client: MlflowClient, experiment_id: str, tag: str) -> bool:
    query = f"tags.{_ROLLOUT_TAG} = '{tag}'"
    found = client.search_traces(locations=[experiment_id], filter_string=query, max_results=1, include_spans=False)
    return bool(found)
