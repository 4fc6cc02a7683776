"""Versioned tasks: a Prefect task whose cache key is explicit, and whose result outlives the process.

The key is made of the task's name and version, the code it runs, the part of the recipe it reads, and
the digests of its inputs. A key that cannot be computed is an error, never a silent miss. So a flow
that was killed anywhere and is run again does again only what was cut off.
"""

import functools
import hashlib
from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any

from prefect import Task
from prefect.cache_policies import CacheKeyFnPolicy
from pydantic import BaseModel

from infra.doors import cycle, objects
from infra.memory import give_back
from infra.result_storage import ResultBlobs
from schemas.errors import DreamGymError
from schemas.plain import plain, references_in, restored
from schemas.recipe import digest_of
from schemas.records import Reference

_ROOMS = ("schemas", "models", "infra", "tasks")


def versioned_task(version: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function a versioned task.

    Its arguments are references, recipe sections and small plain values; its result is a reference, or
    plain data with references in it.

    Args:
        version: TASK_VERSION; raise it when the result changes for a reason the digests cannot see.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        name, code = function.__name__, code_digest()
        starts: list[str] = []

        def key(context: Any, arguments: dict[str, Any]) -> str:
            return cache_key(name, version, code, arguments)

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            starts.append(name)
            try:
                return plain(function(*args, **kwargs))
            finally:
                give_back()

        def prefect_task(*, again: bool = False) -> Task[..., Any]:
            made = Task(
                run,
                name=name,
                persist_result=True,
                refresh_cache=again,
                result_serializer="json",
                log_prints=False,
                cache_policy=CacheKeyFnPolicy(cache_key_fn=key),
            )
            made.result_storage = ResultBlobs()  # as an argument, it would have to be registered on a server
            return made

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature(function).bind(*args, **kwargs)
            cache_key(name, version, code, given.arguments)  # Prefect would swallow its error and cache nothing
            num_starts = len(starts)
            result = restored(prefect_task()(*args, **kwargs))
            if len(starts) > num_starts or all(map(objects().holds, references_in(result))):
                return result
            cycle().display.say(f"{name}: a part of what it made is no longer stored, so it is made again")
            return restored(prefect_task(again=True)(*args, **kwargs))

        return call

    return decorate


def cache_key(name: str, version: int, code: str, arguments: dict[str, Any]) -> str:
    """Sha256 of everything that decides the result.

    Raises:
        DreamGymError: an argument that has no digest.
    """
    inputs = {argument: _digestible(value) for argument, value in arguments.items()}
    return digest_of({"task": name, "version": version, "code": code, "inputs": inputs})


def _digestible(value: Any) -> Any:
    if isinstance(value, Reference):
        return value.sha256
    if isinstance(value, BaseModel):
        return digest_of(value)
    if isinstance(value, dict):
        return {str(key): _digestible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_digestible(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    raise DreamGymError(f"a versioned task was given a {type(value).__name__}, which has no digest: pass a reference")


@lru_cache
def code_digest() -> str:
    """Digest of all code that a task may run: every file of its room and of the rooms below."""
    root = Path(__file__).parent.parent
    files = [path for room in _ROOMS for path in sorted((root / room).rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
