"""Prefect tasks with a key of the caller, under which their results are stored."""

from collections.abc import Callable
from typing import Any

from prefect import Task
from prefect.cache_policies import CacheKeyFnPolicy

from infra.orchestration.result_storage import ResultBlobs


def keyed_task(function: Callable[..., Any], name: str, key: str, *, again: bool = False) -> Task[..., Any]:
    """Return a task. It takes over the result under its key, and runs the function only if there is none.

    Args:
        function: Function of the task; its result is stored as JSON.
        name: Name of the task in Prefect.
        key: Decides whether two calls have the same result.
        again: Run the function even if there is a result, and replace it.
    """
    made = Task(
        function,
        name=name,
        persist_result=True,
        refresh_cache=again,
        result_serializer="json",
        log_prints=False,
        cache_policy=CacheKeyFnPolicy(cache_key_fn=lambda context, arguments: key),
    )
    made.result_storage = ResultBlobs()  # as an argument, it would have to be registered on a server
    return made
