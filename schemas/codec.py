"""Lossless encoding of trajectories as bytes: token ids and log-probabilities exactly as they were sampled."""

import zlib
from collections.abc import Sequence

import orjson
from pydantic import TypeAdapter

from schemas.records import Trajectory

_TRAJECTORIES = TypeAdapter(list[Trajectory])


def encode_trajectories(trajectories: Sequence[Trajectory]) -> bytes:
    """Return trajectories as compressed JSON; equal trajectories give equal bytes."""
    return zlib.compress(orjson.dumps(list(trajectories)), level=1)


def decode_trajectories(content: bytes) -> list[Trajectory]:
    """Return the trajectories that encode_trajectories encoded."""
    return _TRAJECTORIES.validate_json(zlib.decompress(content))
