"""Answer of `dreamgym check`: can the recipe run here, how long does it take, what does it cost, what is missing."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from flows.planning.foresee import Foresight, foresee
from flows.planning.list_recipes import hardware_of
from flows.planning.missing import missing
from flows.planning.plan import estimate_of, excess_of, gib, plan_of, seen_by_the_gate
from flows.runs.extent import seconds_last_time
from infra.settings import settings
from models.measurement.power import Advice
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe
from schemas.runs import NOT_PROVEN
from tasks.planning.estimate import Estimate
from tasks.running.device import device


@dataclass(frozen=True, slots=True)
class Checked:
    """Everything that is known of a recipe before it runs."""

    recipe: Recipe
    missing: list[str]
    """Requirements that are missing here, each with what to do."""
    plan: dict[str, int]
    seconds_last_time: float | None
    estimate: Estimate | str
    """Memory and time, or why they are unknown."""
    taken_over: Foresight | None
    gate_power: Advice

    def plain(self) -> dict[str, Any]:
        """Return it as JSON data, with the resolved recipe."""
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "digest": self.recipe.digest,
            "missing": self.missing,
            "plan": self.plan,
            "seconds_last_time": self.seconds_last_time,
            "estimate": self.estimate if isinstance(self.estimate, str) else asdict(self.estimate),
            "taken_over": asdict(self.taken_over) if self.taken_over else None,
            "gate_power": asdict(self.gate_power),
        }

    @property
    def refusal(self) -> str:
        """Why the recipe cannot run here, and what to do; empty if it can."""
        if self.missing:
            return f"{self.recipe.name} cannot run here. Missing: {'; '.join(self.missing)}"
        return excess_of(self.recipe, self.estimate)

    def require_ready(self) -> None:
        """Refuse a recipe that cannot run here.

        Raises:
            InputError: something is missing, or it does not fit into memory; the message says what to do.
        """
        if self.refusal:
            raise InputError(self.refusal)


def check_recipe(recipe: Recipe) -> Checked:
    """Examine a recipe; nothing is started."""
    plan, lacking = plan_of(recipe), missing(recipe)
    estimate = "something is missing" if lacking else estimate_of(recipe, plan)
    return Checked(
        recipe, lacking, plan, seconds_last_time(recipe), estimate, foresee(recipe), seen_by_the_gate(recipe)
    )


def print_check(checked: Checked, command: str) -> None:
    """Print the answers, one line each.

    Args:
        checked: Answers.
        command: Command that runs the recipe as it was typed, which is printed if it can run.
    """
    answers = Table.grid(padding=(0, 2))
    answers.add_column(no_wrap=True)
    answers.add_column()
    for name, answer in _answers(checked):
        answers.add_row(name, answer)
    if not checked.refusal:
        answers.add_row("next", command)
    console = Console()
    console.print(f"{checked.recipe.name}: nothing was started", highlight=False)
    console.print(answers, highlight=False)


def _answers(checked: Checked) -> Iterator[tuple[str, str]]:
    plan, estimate = checked.plan, checked.estimate
    ready = "" if checked.missing else "; nothing is missing"
    yield "here", f"{device()}, {settings().num_threads} threads{ready}"
    yield from (("missing", sentence) for sentence in checked.missing)
    yield "time", _time(checked)
    if isinstance(estimate, Estimate):
        stage = max(estimate.stages, key=lambda name: estimate.stages[name].total)
        servers = f", {gib(estimate.servers)} of it for vLLM's servers" if estimate.servers else ""
        workers = f", {gib(estimate.workers)} of it for processes side by side" if estimate.workers else ""
        yield "memory", f"{gib(estimate.needed)} of {gib(estimate.available)} at most ({stage}){servers}{workers}"
        free = "" if estimate.disk_free is None else f", {gib(estimate.disk_free)} are free"
        yield "disk", f"{gib(estimate.disk)} of models and optimiser states{free}"
    else:
        yield "memory", f"not known: {estimate}"
    yield "data", f"{plan['logged_episodes']:,} logged episodes, {plan['own_episodes']:,} of the starting policy"
    yield (
        "dream",
        f"{plan['dream_rounds']} rounds, {plan['dreamt_episodes']:,} episodes of at most {plan['max_steps_per_episode']} "
        f"steps, {plan['policy_updates']} updates",
    )
    yield (
        "real",
        f"{plan['real_training_episodes']:,} episodes to train, {plan['real_evaluation_episodes']:,} to measure",
    )
    yield "cost", _cost(checked)
    yield "left", _left(checked.taken_over)
    yield "gate", checked.gate_power.sentence if checked.recipe.environment.can_be_played else NOT_PROVEN


def _time(checked: Checked) -> str:
    if seconds := checked.seconds_last_time:
        return f"{seconds / 60:.0f} min last time"
    described = checked.recipe.duration or "not known"
    return f"{described} on {hardware_of(checked.recipe)}; no run of it ran here yet"


def _cost(checked: Checked) -> str:
    asked, requests = checked.recipe.endpoint_models, checked.plan["max_teacher_requests"]
    if not asked:
        return "no endpoint is asked"
    teacher = f", up to {requests:,} requests to the teacher" if requests else ""
    return f"an endpoint is asked: {', '.join(asked)}{teacher}"


def _left(left: Foresight | None) -> str:
    if left is None:
        return "everything: no run of this recipe is here to take over from"
    covered = f"{left.num_taken_over} of {left.num_steps} steps would be taken over from run {left.run_id}"
    return (
        f"{covered}; the first to run again is {left.first_to_do}" if left.first_to_do else f"{covered}: nothing is new"
    )
