"""Lossless encoding of trajectories as bytes: token ids and log-probabilities exactly as they were sampled."""

import zlib
from collections.abc import Sequence
from typing import Any

import orjson

from schemas.records import AgentTask, Failure, Step, Tokens, Trajectory, Turn


def encode_trajectories(trajectories: Sequence[Trajectory]) -> bytes:
    """Return trajectories as compressed JSON; equal trajectories give equal bytes."""
    return zlib.compress(orjson.dumps(list(trajectories)), level=1)


def decode_trajectories(content: bytes) -> list[Trajectory]:
    """Return the trajectories that encode_trajectories encoded."""
    return [_trajectory(plain) for plain in orjson.loads(zlib.decompress(content))]


def _trajectory(plain: dict[str, Any]) -> Trajectory:
    return Trajectory(
        task=AgentTask(**plain["task"]),
        origin=plain["origin"],
        turns=[Turn(**{**turn, "step": _step(turn["step"])}) for turn in plain["turns"]],
        tokens=tuple(Tokens(**stream) for stream in plain["tokens"]),
        failure=_failure(plain["failure"]),
        truncated=plain["truncated"],
        source=plain["source"],
        group_id=plain.get("group_id", ""),
        episode_id=plain.get("episode_id", ""),
    )


def _step(plain: dict[str, Any]) -> Step:
    demonstrations, failure = tuple(plain["demonstrations"]), _failure(plain["failure"])
    return Step(**{**plain, "demonstrations": demonstrations, "failure": failure})


def _failure(text: str | None) -> Failure | None:
    return Failure(text) if text else None
