"""A Ray cluster that is there: calls are put to its workers, and put to others if a node dies.

Plain Ray tasks, and not Prefect's Ray runner or Ray Train: Ray itself repeats what a dead node had begun, workers need to
reach neither Prefect nor MLflow, and what travels are references as JSON, a few hundred bytes.
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
    """What a function makes of each payload, at once on as many workers as the cluster has room for.

    Args:
        settings: Say where the cluster is, and what each call takes of a node.
        function: Of this project, which is installed on every node. Called twice with the same payload, it makes the same.
        payloads: One for each call.
        on_progress: Called now and then with how many calls are done.

    Raises:
        InputError: Ray is not installed, or there is no such cluster.
        EngineError: a call was lost with its node, again and again.
        DreamGymError: a call failed; as it was raised there.
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
    """Refuse a cluster that is not there, which Ray would look for for minutes.

    Raises:
        InputError: Ray is not installed, or nobody listens at the address; there is nothing to refuse without one.
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
    """Those alone: Ray aborts the whole process when it cancels a call whose answer it is just taking in."""
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
