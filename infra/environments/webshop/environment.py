"""WebShop as a vectorised environment, with a server session for each slot and simultaneous requests."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from infra.environments.webshop.server import Answer, WebshopServer
from infra.environments.webshop.shopper import keywords, next_action
from infra.environments.webshop.view import NAVIGATION, clickables, instruction_on, state_text
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.records import AgentTask, Failure, Step
from schemas.state_text import lines_of

FAMILY = "webshop"
_GOALS = {"test": range(500), "valid": range(500, 1500), "train": range(1500, 12087)}
"""Numbers of goals, in WebShop's own split."""
_AT_ONCE = 16
"""Maximum number of simultaneous requests."""
_NOT_BEGUN = "- saw: nothing, for the shop could not be entered"


@dataclass
class _Visit:
    """State of one slot's episode."""

    session: int | None
    """Session on the server; None if there is none yet."""
    task: AgentTask
    state: str = _NOT_BEGUN
    actions: list[str] = field(default_factory=list)
    lost: str = ""
    """Reason why the episode cannot go on; empty if it can."""


class WebshopEnvironment:
    """WebShop's pages as states; success is to buy what fits in every respect.

    Differs: WebShop scores a purchase between 0 and 1; here, as in the paper, only a score of 1 is rewarded.
    """

    def __init__(self, server: WebshopServer) -> None:
        """Create an environment for the shop of a server, without any request yet."""
        self._server = server
        self._visits: dict[int, _Visit] = {}
        self._instructions: dict[int, str] = {}

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Return goals of a split, whose instructions come from the server.

        Raises:
            InputError: If the split has too few goals.
            EnvironmentUnavailable: If the server does not answer.
        """
        goals = _GOALS[split][first_seed : first_seed + num_tasks]
        if len(goals) < num_tasks:
            raise InputError(
                f"{num_tasks} {split} tasks were requested, from number {first_seed} on, but WebShop has "
                f"{len(_GOALS[split])}: lower environment.num_{split}_tasks"
            )
        if unknown := [goal for goal in goals if goal not in self._instructions]:
            session = self._server.create()
            self._instructions |= {goal: instruction_on(self._server.reset(session, goal)) for goal in unknown}
        return [AgentTask(f"{split}/{goal}", self._instructions[goal], split, FAMILY, goal) for goal in goals]

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Enter the shop anew in each slot. If that fails, the first step fails."""
        for slot, task in tasks.items():
            known = self._visits.get(slot)
            self._visits[slot] = _Visit(known.session if known and not known.lost else None, task)
        self._admit([self._visits[slot] for slot in tasks])
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(self._enter, [self._visits[slot] for slot in tasks]))
        return {slot: self._visits[slot].state for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot. Only a session that the server lost ends as failed."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            steps = threads.map(self._act, [self._visits[slot] for slot in actions], actions.values())
            return dict(zip(actions, steps, strict=True))

    def _admit(self, visits: Sequence[_Visit]) -> None:
        """Open a session for each visit that has none, one after the other.

        AgentGym's server would give the same session to two requests at once.
        """
        try:
            for visit in visits:
                visit.session = self._server.create() if visit.session is None else visit.session
        except EnvironmentUnavailable as lost:
            for visit in visits:
                visit.lost = "" if visit.session is not None else str(lost)

    def _enter(self, visit: _Visit) -> None:
        if visit.session is None:
            return
        try:
            visit.state = state_text(self._server.reset(visit.session, visit.task.seed))
        except EnvironmentUnavailable as lost:
            visit.lost = str(lost)

    def _act(self, visit: _Visit, action: str) -> Step:
        if visit.session is not None and not visit.lost:
            try:
                return self._step(visit, action, self._server.step(visit.session, action))
            except EnvironmentUnavailable as lost:
                visit.lost = str(lost)
        return Step(visit.state, 0.0, done=True, success=False, reasoning=visit.lost, failure=Failure.ENVIRONMENT)

    @staticmethod
    def _step(visit: _Visit, action: str, answer: Answer) -> Step:
        visit.actions.append(action)
        visit.state = state_text(answer.page)
        won = answer.done and answer.score == 1.0
        return Step(visit.state, float(won), done=answer.done, success=won)

    def expert(self, slot: int) -> str:
        """Return the action of a shopper by rule, which sees what the agent sees and is often wrong."""
        visit = self._visits[slot]
        return next_action(visit.task.instruction, lines_of(visit.state), visit.actions)

    def admissible_actions(self, slot: int) -> list[str]:
        """Return all clicks, and, where there is a search bar, a search for the requested product."""
        visit = self._visits[slot]
        lines = lines_of(visit.state)
        searches = [f"search[{keywords(visit.task.instruction)}]"] if "search" in lines else []
        return searches + [f"click[{one}]" for one in clickables(lines)]

    def near_misses(self, slot: int) -> list[str]:
        """Return clicks that other pages have, and a search, which may not be possible here."""
        return [f"search[{keywords(self._visits[slot].task.instruction)}]", *(f"click[{one}]" for one in NAVIGATION)]

    def names(self, task: AgentTask) -> list[str]:
        """Return no names, because products are found by their names."""
        return []

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task is no goal of the shop; None if it is fine.

        A generated task may request anything in a shop. It needs only an instruction and a first state with a search
        bar.
        """
        if task.generated:
            return _generated_task_error(task)
        if task.seed not in _GOALS.get(task.split, ()) or task.task_id != f"{task.split}/{task.seed}":
            return f"no {task.split} goal is called {task.task_id!r}"
        (own,) = self.tasks(task.split, 1, task.seed - _GOALS[task.split].start)
        return None if task.instruction == own.instruction else f"goal {task.seed} has another instruction"


def _generated_task_error(task: AgentTask) -> str | None:
    try:
        lines = lines_of(task.initial_state)
    except ValueError as error:
        return str(error)
    return None if task.instruction and "search" in lines else "nothing is asked for, or there is no search bar"
