"""The dream out: the experience model of a finished cycle, as an environment that other trainers play in.

serve             an OpenEnv server, `dreamgym serve`
gymnasium_dream   a Gymnasium environment in this process
"""

import socket
from typing import TYPE_CHECKING, Any

import uvicorn

from flows.find_run import find_run
from infra.cycles import summaries
from infra.doors import Cycle, begin
from infra.progress import Display
from infra.serving.messages import MAX_ACTION_CHARACTERS
from infra.serving.openenv import Limits, Served, app_of
from infra.settings import settings
from infra.tracking import Tracker
from schemas.errors import InputError
from schemas.recipe import Recipe
from tasks.play import dream_environment
from tasks.pool_tasks import tasks_in
from tasks.versioned import restored

if TYPE_CHECKING:
    from infra.serving.gymnasium_environment import TextEnvironment

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MAX_MESSAGE_BYTES = 16 * MAX_ACTION_CHARACTERS


def serve(name: str | None, host: str, port: int, max_sessions: int) -> None:
    """Serve a dream until Ctrl-C.

    Args:
        name: Of an experience model, by the start of its digest, or of a cycle; None: the latest cycle's.
        host: Where to listen.
        port: Where to listen.
        max_sessions: How many may play at a time.

    Raises:
        InputError: there is no such dream, others could play without a token, or the port is taken.
    """
    summary = find_dream(name)
    token = settings().serve_token.get_secret_value()
    if host not in _LOOPBACK and not token:
        raise InputError(f"whoever reaches {host} could play: set DREAMGYM_SERVE_TOKEN, or serve on 127.0.0.1")
    _require_port(host, port)
    display = Display()
    app = app_of(dream_of(summary, display), Limits(max_sessions), token)
    display.say(f"the dream of {summary['cycle_id']} is at ws://{host}:{port} (OpenEnv); Ctrl-C ends it")
    uvicorn.run(app, host=host, port=port, ws_max_size=_MAX_MESSAGE_BYTES, access_log=False, log_level="warning")


def gymnasium_dream(name: str | None = None) -> "TextEnvironment":
    """The dream of an experience model or a cycle as a Gymnasium environment; without a name, of the latest cycle."""
    from infra.serving.gymnasium_environment import TextEnvironment

    dream = dream_of(find_dream(name), Display())
    return TextEnvironment(dream.environment, dream.tasks, dream.max_steps)


def find_dream(name: str | None) -> dict[str, Any]:
    """The summary of the latest cycle with the experience model of this digest, or of the cycle of this name.

    Raises:
        InputError: there is none, or there are several.
    """
    found: dict[str, dict[str, Any]] = {}
    for summary in summaries() if name else ():
        model = restored(summary["lineage"]).get("experience_model")
        if model and name and model.sha256.startswith(name):
            found[model.sha256] = summary
    if len(found) > 1:
        raise InputError(f"experience models that begin with {name!r}: {', '.join(found)}; give more of one")
    return next(iter(found.values())) if found else find_run(name)


def dream_of(summary: dict[str, Any], display: Display) -> Served:
    """A cycle's experience model, grounded in its real experience, with the tasks that this experience covers.

    Raises:
        InputError: the cycle was stopped before it had one.
    """
    cycle_id, lineage = summary["cycle_id"], restored(summary["lineage"])
    if "experience_model" not in lineage:
        raise InputError(f"cycle {cycle_id} has no experience model yet: dreamgym run it further first")
    recipe = Recipe.model_validate(summary["recipe"])
    begin(Cycle(cycle_id, recipe.digest, Tracker(settings(), cycle_id, {}), display))
    environment = dream_environment(lineage["experience_model"], lineage["experience"], recipe.play, recipe.seed)
    tasks = tasks_in(lineage["experience"])
    return Served(environment, tasks, recipe.environment.max_steps, f"{recipe.name}, dreamt: {recipe.description}")


def _require_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(f"cannot serve at {host}:{port}: {error.strerror}. Take another: --host, --port") from None
