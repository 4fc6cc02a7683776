"""Versioned tasks: Prefect tasks with an explicit cache key, whose results outlive the process.

The key covers everything that decides the result (tasks/running/cache_key.py). A key that cannot be computed is an
error, never a silent miss. So a flow that was killed and is run again repeats only unfinished tasks, and a later run
reuses unchanged results. A result names the run that produced it.
"""

import functools
from collections.abc import Callable
from inspect import signature
from typing import Any

from pydantic import BaseModel

from infra.context import objects, run_context
from infra.running.memory import release_free_memory
from schemas.plain import plain, references_in, restored
from schemas.recipes.digests import changed_fields, digest_of
from tasks.running.cache_key import key_parts


def versioned_task(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function into a versioned task.

    Its arguments are references, recipe sections and small plain values; its result is a reference, or plain data with
    references in it.

    Raises:
        DreamGymError: the task is called with an argument that has no digest.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        from infra.orchestration.keyed_task import keyed_task  # Prefect takes a second to import; workers do without

        arguments = signature(function).bind(*args, **kwargs).arguments
        parts = key_parts(function.__name__, function.__module__, arguments)
        ran: list[bool] = []

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> dict[str, Any]:
            ran.append(True)
            try:
                return {"made_by": run_context().run_id, "result": plain(function(*args, **kwargs))}
            finally:
                release_free_memory()

        stored = keyed_task(run, parts.task, parts.key)(*args, **kwargs)
        if not ran and not _is_held(restored(stored["result"])):
            run_context().display.say(f"{parts.task}: part of its result is no longer stored, so it is computed again")
            stored = keyed_task(run, parts.task, parts.key, again=True)(*args, **kwargs)
        result = restored(stored["result"])
        made = [one.sha256 for one in references_in(result)]
        run_context().steps.note(parts, run_context().run_id, stored["made_by"], made, _sections(arguments))
        return result

    return call


def _is_held(result: Any) -> bool:
    or_removed = not run_context().remakes_removed
    return all(objects().holds(one, or_removed=or_removed) for one in references_in(result))


def _sections(arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return changed fields of the recipe sections among arguments, by digest: a digest alone shows no differences."""
    sections = [value for value in arguments.values() if isinstance(value, BaseModel)]
    return {digest_of(section): changed_fields(section) for section in sections}
