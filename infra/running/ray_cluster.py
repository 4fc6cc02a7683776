"""Calls on an existing Ray cluster, repeated on another node if one dies.

Plain Ray tasks instead of Prefect's Ray runner or Ray Train: Ray itself repeats the work of a dead node, workers need
access to neither Prefect nor MLflow, and only references travel, as a few hundred bytes of JSON.
"""

import logging
import os
import socket
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from infra.settings import Settings
from schemas.errors import EngineError, InputError

_MOST_REPEATS = 3
_LOOK_EVERY_S = 1.0
_TIMEOUT_S = 2.0


def on_ray(
    settings: Settings,
    function: Callable[[bytes], bytes],
    payloads: Sequence[bytes],
    on_progress: Callable[[int], None] = lambda num_done: None,
) -> list[bytes]:
    """Apply a function to each payload on the Ray cluster and return the results in order.

    Args:
        settings: Address of the cluster, and resources that each call takes of a node.
        function: Function of this project, which must be installed on every node. It must be deterministic, because a
            call may be repeated.
        payloads: One payload per call.
        on_progress: Called regularly with the number of finished calls.

    Raises:
        InputError: Ray is not installed, or there is no cluster at the address.
        EngineError: a call was lost together with its node too often.
        DreamGymError: a call failed; the error is the one that was raised on the worker.
    """
    ray = _connected(settings)
    remote = ray.remote(
        num_cpus=settings.ray_cpus, num_gpus=settings.ray_gpus, max_retries=_MOST_REPEATS, scheduling_strategy="SPREAD"
    )(_as_worker)
    calls = [remote.remote(function, payload, int(settings.ray_cpus)) for payload in payloads]
    try:
        _await(ray, calls, on_progress)
        return [_answer(ray, call) for call in calls]
    except BaseException:
        _cancel_unfinished(ray, calls)
        raise


def require_ray(settings: Settings) -> None:
    """Check that the configured cluster is reachable, because Ray itself would try for minutes.

    Raises:
        InputError: Ray is not installed, or nothing listens at the address. Never raised if no cluster is configured.
    """
    if not settings.ray_address:
        return
    if find_spec("ray") is None:
        raise InputError("DREAMGYM_RAY_ADDRESS is set, but Ray is not installed: pip install 'dreamgym[ray]'")
    place = urlsplit(f"//{settings.ray_address.removeprefix('ray://')}")
    try:
        socket.create_connection((place.hostname or "", place.port or 0), timeout=_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise InputError(f"no Ray cluster at DREAMGYM_RAY_ADDRESS {settings.ray_address}: {error}") from error


def _connected(settings: Settings) -> Any:
    require_ray(settings)
    import ray

    if not ray.is_initialized():
        ray.init(address=settings.ray_address, log_to_driver=False, logging_level=logging.ERROR)
    return ray


def _as_worker(function: Callable[[bytes], bytes], payload: bytes, num_threads: int) -> bytes:
    os.environ.setdefault("DREAMGYM_NUM_THREADS", str(max(1, num_threads)))
    return function(payload)


def _await(ray: Any, calls: Sequence[Any], on_progress: Callable[[int], None]) -> None:
    waiting = list(calls)
    while waiting:
        _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_LOOK_EVERY_S)
        on_progress(len(calls) - len(waiting))


def _cancel_unfinished(ray: Any, calls: Sequence[Any]) -> None:
    """Cancel only unfinished calls: Ray aborts the whole process if a call is cancelled while its result arrives."""
    _, unfinished = ray.wait(calls, num_returns=len(calls), timeout=0)
    for call in unfinished:
        ray.cancel(call)


def _answer(ray: Any, call: Any) -> bytes:
    try:
        return ray.get(call)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise EngineError(f"a call to the Ray cluster was lost: {error}") from error
