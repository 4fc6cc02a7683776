"""Serve the experience model of a finished run as an environment for other trainers.

serve             an OpenEnv server, `dreamgym serve`
gymnasium_dream   a Gymnasium environment in this process
"""

from typing import TYPE_CHECKING, Any

import uvicorn

from flows.planning.check_serving import find_dream
from infra.context import RunContext, set_run_context
from infra.serving.messages import MAX_ACTION_CHARACTERS
from infra.serving.openenv import Limits, Served, app_of
from infra.settings import settings
from infra.tracking.progress import Display
from infra.tracking.tracker import Tracker
from schemas.plain import restored
from schemas.recipes.stored_recipes import stored_recipe
from tasks.data.pool_tasks import tasks_in
from tasks.playing.play import dream_environment

if TYPE_CHECKING:
    from infra.serving.gymnasium_environment import TextEnvironment

_MAX_MESSAGE_BYTES = 16 * MAX_ACTION_CHARACTERS


def serve(summary: dict[str, Any], host: str, port: int, max_sessions: int) -> None:
    """Serve the dream of a run until Ctrl-C.

    Args:
        summary: Record of the run (find_dream).
        host: Address to listen on; see require_place.
        port: Port to listen on.
        max_sessions: Maximum number of concurrent sessions.
    """
    display = Display()
    app = app_of(dream_of(summary, display), Limits(max_sessions), settings().serve_token.get_secret_value())
    display.say(f"the dream of {summary['run_id']} is at ws://{host}:{port} (OpenEnv); Ctrl-C ends it")
    uvicorn.run(app, host=host, port=port, ws_max_size=_MAX_MESSAGE_BYTES, access_log=False, log_level="warning")


def gymnasium_dream(name: str | None = None) -> "TextEnvironment":
    """Return the dream of an experience model or a run (None: the latest) as a Gymnasium environment."""
    from infra.serving.gymnasium_environment import TextEnvironment

    dream = dream_of(find_dream(name), Display())
    return TextEnvironment(dream.environment, dream.tasks, dream.max_steps)


def dream_of(summary: dict[str, Any], display: Display) -> Served:
    """Return a run's experience model, grounded in its real experience, with the tasks that this experience covers."""
    run_id, lineage = summary["run_id"], restored(summary["lineage"])
    recipe = stored_recipe(summary["recipe"])
    set_run_context(RunContext(run_id, recipe.digest, Tracker(settings(), run_id, {}, reopen=False), display))
    environment = dream_environment(lineage["experience_model"], lineage["experience"], recipe.play, recipe.seed)
    tasks = tasks_in(lineage["experience"])
    return Served(environment, tasks, recipe.environment.max_steps, f"{recipe.name}, dreamt: {recipe.description}")
