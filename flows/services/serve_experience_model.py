"""Serve the experience model of a finished run as an environment for other trainers.

serve                 an OpenEnv server, `dreamgym serve`
gymnasium_dream       a Gymnasium environment in this process
single_player_dream   an environment for one player in this process, `dreamgym.open_dream`
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvicorn

from flows.planning.check_serving import find_dream
from flows.runs.reopen_run import reopen_run
from infra.progress.progress import Display
from infra.serving.messages import MAX_ACTION_CHARACTERS
from infra.serving.openenv import Limits, Served, app_of
from infra.serving.single_player import SinglePlayerEnvironment
from infra.settings import settings
from schemas.plain import restored
from tasks.data.pool_tasks import tasks_in
from tasks.playing.play import dream_environment

if TYPE_CHECKING:
    from infra.serving.gymnasium_environment import TextEnvironment

_MAX_MESSAGE_BYTES = 16 * MAX_ACTION_CHARACTERS


def serve(
    summary: dict[str, Any],
    host: str,
    port: int,
    max_sessions: int,
    show: Callable[[dict[str, Any]], None] | None = None,
) -> None:
    """Serve the dream of a run until Ctrl-C.

    Args:
        summary: Record of the run (find_dream).
        host: Address to listen on; see require_place.
        port: Port to listen on.
        max_sessions: Maximum number of concurrent sessions.
        show: Receives run and address instead of the display.
    """
    display = Display()
    app = app_of(dream_of(summary, display), Limits(max_sessions), settings().serve_token.get_secret_value())
    if show:
        show({"run_id": summary["run_id"], "url": f"ws://{host}:{port}", "protocol": "OpenEnv"})
    else:
        display.say(f"the dream of {summary['run_id']} is at ws://{host}:{port} (OpenEnv); Ctrl-C ends it")
    uvicorn.run(app, host=host, port=port, ws_max_size=_MAX_MESSAGE_BYTES, access_log=False, log_level="warning")


def gymnasium_dream(name: str | None = None) -> "TextEnvironment":
    """Return the dream of an experience model or a run (None: the latest) as a Gymnasium environment."""
    from infra.serving.gymnasium_environment import TextEnvironment

    return TextEnvironment(single_player_dream(find_dream(name), Display()))


def single_player_dream(summary: dict[str, Any], display: Display) -> SinglePlayerEnvironment:
    """Return the dream of a run as an environment with one episode at a time; see dream_of."""
    dream = dream_of(summary, display)
    return SinglePlayerEnvironment(dream.environment, dream.tasks, dream.max_steps)


def dream_of(summary: dict[str, Any], display: Display) -> Served:
    """Return a run's experience model, grounded in its real experience, with the tasks that this experience covers."""
    recipe, lineage = reopen_run(summary, display), restored(summary["lineage"])
    environment = dream_environment(lineage["experience_model"], lineage["experience"], recipe.play, recipe.seed)
    tasks = tasks_in(lineage["experience"])
    return Served(environment, tasks, recipe.environment.max_steps, f"{recipe.name}, dreamt: {recipe.description}")
