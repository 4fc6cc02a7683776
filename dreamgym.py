"""DreamGym in Python: run recipes, read their results, act with trained policies, play in the dream and for real.

    import dreamgym

    run = dreamgym.run("textworld-tiny", {"dream.num_rounds": 8})
    dream, policy = dreamgym.open_dream(run), dreamgym.load_policy(run)
    state = dream.reset()
    step = dream.step(policy.act(dream.task, state))

These calls do what the commands `run`, `show`, `export` and `serve` do, with the same settings (`DREAMGYM_*`, read once,
at the first call) and the same errors: each is a `DreamGymError` that says what to do. Importing this module is quick;
torch, Prefect and MLflow are imported by the calls that need them.

An environment of your own is an entry point (infra/environments/README.md). There is no call to register one, because
runs are resumed, judged and served by other processes, and their cache keys hold the environment's code: both need a
class that is installed, not one that lives in a notebook.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.stage import Stage
from schemas.errors import DreamGymError
from schemas.policies import PolicyName
from schemas.records import AgentTask, Step

if TYPE_CHECKING:
    from infra.progress.progress import Display
    from infra.serving.single_player import SinglePlayerEnvironment
    from models.rollout.agent import Agent
    from schemas.recipes.recipe import Recipe

__all__ = [
    "AgentTask",
    "DreamGymError",
    "PolicyName",
    "Run",
    "Stage",
    "Step",
    "find",
    "load_policy",
    "open_dream",
    "open_environment",
    "run",
]

Changes = Sequence[str] | Mapping[str, Any]
"""Changes of a recipe: texts such as `rl.group_size=4`, or values by dotted name."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended, read from its record."""

    record: dict[str, Any]
    """Everything that is known about the run, as in `dreamgym show --json`."""

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.record["run_id"]

    @property
    def recipe(self) -> "Recipe":
        """Recipe of the run, with all changes."""
        from schemas.recipes.recipe import stored_recipe

        return stored_recipe(self.record["recipe"])

    @property
    def results(self) -> dict[str, Any]:
        """Results of its policies and of the dream; without policies if the run stopped before they were evaluated."""
        return self.record["results"]

    @property
    def gate(self) -> dict[str, Any]:
        """Verdict on the dream-trained policy: `passed`, `gain`, `reasons`; empty if it was not judged."""
        return self.record["gate"]

    @property
    def report(self) -> Path:
        """HTML page with the results."""
        return Path(self.record["report"])

    def policy(self, name: PolicyName | str | None = None, *, seed: int = 0) -> "Agent":
        """Load a policy of this run; see load_policy."""
        return load_policy(self, name, seed=seed)


def run(
    recipe: str | Path,
    changes: Changes = (),
    *,
    until: Stage | str = Stage.REAL,
    again: bool = False,
    quiet: bool = False,
) -> Run:
    """Run a recipe in this process if there is a reason to, or resume an interrupted run of it.

    If nothing is new, the earlier run is returned. A policy that the gate refuses is no error: see `Run.gate`.

    Args:
        recipe: Name of a shipped recipe, or a TOML file.
        changes: Changes of the recipe: `["rl.group_size=4"]`, or `{"rl.group_size": 4}`.
        until: Last stage: ingest, experience, dream, evaluate or real.
        again: Run the next seed without another reason.
        quiet: Show no progress on standard error.

    Raises:
        InputError: the recipe, a change or a setting is wrong, or a service is missing.
        DreamGymError: the run failed; the same call goes on from its last finished step.
        ValueError: there is no such stage.
    """
    from flows.planning.load_recipe import load_recipe
    from flows.running.run_in_process import run_in_process

    loaded, stage = load_recipe(str(recipe), changes), Stage(until)
    return Run(run_in_process(loaded, stage, _display(quiet=quiet), again=again))


def find(run: str = "@latest") -> Run:
    """Return a finished run.

    Args:
        run: Id of a run, the start of one, `@latest` or `@champion`.

    Raises:
        InputError: no finished run has that name, or several have.
    """
    from flows.runs.find_run import find_run

    return Run(find_run(run))


def load_policy(run: Run | str = "@champion", name: PolicyName | str | None = None, *, seed: int = 0) -> "Agent":
    """Load a policy that answers a task and a state with an action: `policy.act(task, state, history)`.

    Args:
        run: A run, or its name as in `find`.
        name: start, dream or sim-to-real; None: the promoted one, or else the dream-trained one. Only of a run that is
            not named `@champion`.
        seed: Seed of sampled actions.

    Raises:
        InputError: there is no such run, it has no such policy, or there is no champion.
        IntegrityError: a file of the policy does not match its digest.
        StorageError: a file of the policy is missing from the object store, or MLflow cannot be used.
        ValueError: there is no such name.
    """
    from flows.runs.find_policy import find_policy

    found = find_policy(_name(run), None if name is None else PolicyName(name))
    _embed_prefect()
    from flows.services.open_policy import open_policy

    return open_policy(found, _display(quiet=True), seed)


def open_dream(run: Run | str = "@latest") -> "SinglePlayerEnvironment":
    """Open the experience model of a run as an environment with one episode at a time: `reset` and `step`.

    Args:
        run: A run, its name as in `find`, or the start of an experience model's digest.

    Raises:
        InputError: there is no such run, or it stopped before it had an experience model.
        IntegrityError: a file of the experience model does not match its digest.
        StorageError: a file of it is missing from the object store, or MLflow cannot be used.
    """
    from flows.planning.check_serving import find_dream

    summary = find_dream(_name(run))
    _embed_prefect()
    from flows.services.serve_experience_model import single_player_dream

    return single_player_dream(summary, _display(quiet=True))


def open_environment(
    recipe: str | Path, changes: Changes = (), *, split: str = "train", num_tasks: int = 16
) -> "SinglePlayerEnvironment":
    """Open the real environment of a recipe, as `open_dream` opens a dream.

    Args:
        recipe: Name of a shipped recipe, or a TOML file.
        changes: Changes of the recipe, as in `run`.
        split: Split of the tasks: train, valid or test.
        num_tasks: Number of tasks to make.

    Raises:
        InputError: the recipe or a change is wrong, or the environment cannot be opened here.
    """
    from flows.planning.load_recipe import load_recipe
    from infra.environments.by_name import open_environment as opened
    from infra.serving.single_player import SinglePlayerEnvironment

    played = load_recipe(str(recipe), changes).environment
    environment = opened(played)
    return SinglePlayerEnvironment(environment, environment.tasks(split, num_tasks), played.max_steps)


def _name(run: Run | str) -> str:
    return run.id if isinstance(run, Run) else run


def _display(*, quiet: bool) -> "Display":
    from rich.console import Console

    from infra.progress.progress import Display

    return Display(Console(stderr=True, highlight=False, quiet=quiet))


def _embed_prefect() -> None:
    """Apply the settings of embedded Prefect, before Prefect is imported."""
    from infra.orchestration.embedded_prefect import embed_prefect

    embed_prefect()
