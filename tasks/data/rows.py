"""Rows of the replay store, each with its full provenance, and conversion of trajectories to rows."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from models.retrieval.replay_index import join
from schemas.ports import Encoder
from schemas.records import Trajectory
from schemas.tables import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Provenance:
    """Provenance of a row: digests, seed, round and run; a field is empty if it had no part in the row."""

    recipe: str
    seed: int
    round: int = 0
    policy: str = ""
    experience_model: str = ""
    run: str = ""

    def columns(self) -> dict[str, str | int]:
        """Return the columns that every row of the replay store has."""
        return {**asdict(self), "schema_version": SCHEMA_VERSION}


def trajectory_id(trajectory: Trajectory) -> str:
    """Return the content key of a trajectory: the same episode of the same task has the same id."""
    turns = "\x1f".join(f"{turn.state}\x1e{turn.action}\x1e{turn.step.state}" for turn in trajectory.turns)
    return hashlib.sha256(f"{trajectory.task.task_id}\x1d{trajectory.origin}\x1d{turns}".encode()).hexdigest()[:32]


def rows_of(
    trajectories: Sequence[Trajectory], provenance: Provenance, encoder: Encoder, first: int = 0
) -> list[dict[str, Any]]:
    """Return one row per turn, with vectors.

    The same episodes of the same provenance, numbered from the same first, give the same row ids.
    """
    named = {_stored_id(t, number, provenance): t for number, t in enumerate(trajectories, first)}
    rows = [row for name, t in named.items() for row in _rows(name, t, provenance)]
    if not rows:
        return []
    vectors = join(encoder, [r["instruction"] for r in rows], [r["state"] for r in rows], [r["action"] for r in rows])
    return [{**row, "vector": vector} for row, vector in zip(rows, vectors, strict=True)]


def stored_id(trajectory: Trajectory) -> str:
    """Return the id under which a logged episode is stored: the digest of its name, or else of its content."""
    if not trajectory.episode_id:
        return trajectory_id(trajectory)
    return hashlib.sha256(
        f"{trajectory.origin}\x1d{trajectory.task.task_id}\x1d{trajectory.episode_id}".encode()
    ).hexdigest()[:32]


def _stored_id(trajectory: Trajectory, number: int, made_by: Provenance) -> str:
    """Return the id under which an episode is stored; each episode that a policy plays counts as a new one."""
    if not made_by.policy:
        return stored_id(trajectory)
    played = (trajectory_id(trajectory), made_by.recipe, made_by.seed, made_by.round, made_by.policy, number)
    return hashlib.sha256("\x1d".join(map(str, played)).encode()).hexdigest()[:32]


def _rows(name: str, trajectory: Trajectory, provenance: Provenance) -> list[dict[str, Any]]:
    task, real, failure = trajectory.task, trajectory.origin == "real", trajectory.failure
    return [
        {
            "row_id": f"{name}/{turn_number}",
            "trajectory_id": name,
            "task_id": task.task_id,
            "instruction": task.instruction,
            "family": task.family,
            "split": task.split,
            "turn": turn_number,
            "state": turn.state,
            "thought": turn.thought,
            "action": turn.action,
            "reasoning": turn.step.reasoning,
            "next_state": turn.step.state,
            "origin": trajectory.origin,
            "real_reward": turn.step.reward if real and not failure else None,
            "dream_reward": turn.step.reward if not real and not failure else None,
            "done": turn.step.done,
            "success": turn.step.success,
            "truncated": trajectory.truncated,
            "failure": failure.value if failure else None,
            "demonstrations": list(turn.step.demonstrations),
            "source": trajectory.source or "policy",
            **provenance.columns(),
            "policy": turn.weight_version or provenance.policy,
        }
        for turn_number, turn in enumerate(trajectory.turns)
    ]
