"""Run parts of a task by workers: here one after the other, in processes of this machine, or on a Ray cluster.

A worker opens the same stores with its own settings. It gets references and recipe sections, and returns a reference.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, cast, get_type_hints

import torch
from pydantic import TypeAdapter
from rich.console import Console

from infra.context import RunContext, background_blobs, run_context, set_run_context
from infra.progress.progress import Display
from infra.running.processes import in_processes
from infra.running.ray_cluster import on_ray
from infra.settings import settings
from infra.tracking.worker_metrics import Notes
from schemas.errors import InputError
from schemas.recipes.digests import digest_of
from schemas.recipes.networks import EngineRecipe
from schemas.records import Reference
from tasks.running.device import device
from tasks.running.import_closure import closure_of

if TYPE_CHECKING:
    from infra.tracking.tracker import Tracker


@dataclass(frozen=True, slots=True)
class _Call:
    """Call sent to a worker."""

    module: str
    function: str
    arguments: list[Any]
    """Arguments as JSON data, in order, of the types that the function declares."""
    run_id: str
    recipe_digest: str
    code: str


@dataclass(frozen=True, slots=True)
class _Answer:
    """Answer sent back by a worker."""

    made: Reference
    notes: Notes
    stage_tokens: dict[str, int]
    stage_failures: dict[str, dict[str, int]]
    stage_limits: dict[str, dict[str, int]]
    endpoint_costs: dict[str, dict[str, int]]
    said: list[str]
    """Messages, for the display of the run."""


class _Listener(Display):
    """Display of a worker: it shows nothing, and keeps messages."""

    def __init__(self) -> None:
        super().__init__(Console(quiet=True))
        self.said: list[str] = []

    def say(self, text: str) -> None:
        """Keep a message."""
        self.said.append(text)


_CALL, _ANSWER = TypeAdapter(_Call), TypeAdapter(_Answer)


def by_workers(
    stage: str,
    function: Callable[..., Reference],
    calls: Sequence[Sequence[Any]],
    engine: EngineRecipe | None = None,
) -> list[Reference]:
    """Call a function with the arguments of each call, and return its results in order.

    Args:
        stage: Name of the stage shown while workers work.
        function: Top-level function of a module, with declared types: references, recipe sections, plain values.
        calls: Arguments of each call, in order.
        engine: Engine that the function samples with, if it may run in processes of this machine; None: it may not.

    Raises:
        InputError: a node of the cluster has other code.
    """
    if settings().ray_address:
        run, where = on_ray, "on Ray"
    elif engine and num_processes(engine, len(calls)) > 1:
        run, where = in_processes, "in processes"
    else:
        return [function(*arguments) for arguments in calls]
    background_blobs().finish()  # a worker reads from the store itself
    with run_context().display.stage(stage) as report:
        payloads = [_CALL.dump_json(_call(function, arguments)) for arguments in calls]
        answers = run(settings(), work, payloads, lambda done: report(done, len(calls), "shards", where))
    return [_received(_ANSWER.validate_json(answer)) for answer in answers]


def num_processes(engine: EngineRecipe, num_calls: int) -> int:
    """Return how many processes of this machine share calls that sample; 1 where a GPU or an engine's servers sample."""
    share_cores = engine.name == "torch" and torch.device(device()).type == "cpu"
    return min(settings().num_threads, num_calls) if share_cores else 1


def _call(function: Callable[..., Reference], arguments: Sequence[Any]) -> _Call:
    plain = [kind.dump_python(value, mode="json") for kind, value in zip(_kinds(function), arguments, strict=True)]
    running = run_context()
    code = _code_digest(function.__module__)
    return _Call(function.__module__, function.__name__, plain, running.run_id, running.recipe_digest, code)


def _code_digest(module: str) -> str:
    return digest_of(dict(closure_of([module]).code))


def _received(answer: _Answer) -> Reference:
    answer.notes.log_into(run_context().tracker)
    for stage, num_tokens in answer.stage_tokens.items():
        run_context().display.used(stage, num_tokens)
    for stage, failures in answer.stage_failures.items():
        run_context().display.time.failed(stage, failures)
    for stage, limits in answer.stage_limits.items():
        run_context().display.time.met(stage, limits)
    for model, cost in answer.endpoint_costs.items():
        run_context().display.time.asked(model, cost)
    for text in answer.said:
        run_context().display.say(text)
    return answer.made


def work(payload: bytes) -> bytes:
    """Execute a call on a worker."""
    call = _CALL.validate_json(payload)
    if call.code != _code_digest(call.module):
        raise InputError("a node of the Ray cluster has other code of dreamgym than this one: install the same on all")
    notes, display = Notes(), _Listener()
    set_run_context(
        RunContext(call.run_id, call.recipe_digest, cast("Tracker", notes), display)
    )  # parts of tasks only log metrics
    function = getattr(import_module(call.module), call.function)
    arguments = [kind.validate_python(plain) for kind, plain in zip(_kinds(function), call.arguments, strict=True)]
    made = function(*arguments)
    spent = display.time
    counts = spent.stage_tokens, spent.stage_failures, spent.stage_limits, spent.endpoint_costs
    return _ANSWER.dump_json(_Answer(made, notes, *counts, display.said))


def _kinds(function: Callable[..., Any]) -> list[TypeAdapter[Any]]:
    """Return the types of a function's parameters, in order."""
    types = get_type_hints(function, include_extras=True)
    return [TypeAdapter(types[name]) for name in signature(function).parameters]
