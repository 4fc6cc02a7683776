"""Rollouts in dream and real by one function; episodes share a batch, and a finished one frees its slot.

repeat: fill free slots -> states into the cache -> sample actions -> environment steps
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from models.text.policies.policy_format import Answer, PolicyFormat
from models.text.renaming import EntityRenaming, renamed_task
from schemas.ports import Engine, Environment, TokenStreams
from schemas.records import MALFORMED, AgentTask, Failure, Origin, Step, Tokens, Trajectory, Turn
from schemas.sampling import Sampled

_OWN_NAMES = EntityRenaming({})


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """Settings of a rollout."""

    temperature: float
    max_steps: int
    max_episode_tokens: int = 4096
    num_slots: int = 128


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """Progress of a rollout."""

    num_done: int
    num_total: int
    num_successes: int
    num_tokens: int


@dataclass
class _Slot:
    """Running episode in a slot."""

    index: int
    task: AgentTask
    state: str
    renamings: EntityRenaming
    turns: list[Turn] = field(default_factory=list)
    history: list[tuple[str, str]] = field(default_factory=list)
    """States and actions of the turns under the names that the policy sees."""
    shown_state: str = ""
    streams: list[Tokens] = field(default_factory=list)
    weight_version: str = ""
    """Version of the weights that acted last."""

    def begin_stream(self) -> None:
        self.streams.append(Tokens([], [], []))

    def saw(self, ids: list[int]) -> None:
        self._append(ids, False, [0.0] * len(ids))

    def append_action(self, sampled: Sampled) -> None:
        self._append(sampled.ids, True, sampled.logprobs)
        self.weight_version = sampled.weight_version

    def _append(self, ids: list[int], is_action: bool, logprobs: list[float]) -> None:
        stream = self.streams[-1]
        stream.ids.extend(ids)
        stream.is_action.extend([is_action] * len(ids))
        stream.logprobs.extend(logprobs)

    def trajectory(self, origin: Origin, failure: Failure | None) -> Trajectory:
        last = self.turns[-1].step
        truncated = not last.done and failure is None
        return Trajectory(self.task, origin, self.turns, tuple(self.streams), failure, truncated)


class Rollout:
    """Rollout of agent tasks by a policy, in order, with as many episodes at once as there are slots."""

    def __init__(
        self,
        engine: Engine,
        format: PolicyFormat,
        environment: Environment,
        origin: Origin,
        options: RolloutOptions,
        renamings: Mapping[str, EntityRenaming] = MappingProxyType({}),
    ) -> None:
        """Create a rollout of one policy, which the engine samples from, in one environment.

        Args:
            engine: Engine that samples actions.
            format: What the policy reads and writes.
            environment: Environment that answers, dreamt or real.
            origin: Origin of the trajectories: dream or real.
            options: Settings of the rollout.
            renamings: Entity renaming by task id, for what the policy is shown; turns have the task's own names.
        """
        self._engine, self._format = engine, format
        self._environment, self._options = environment, options
        self._origin: Origin = origin
        self._renamings = renamings
        self.num_tokens = 0
        self.limits = Counter[str]()
        """Limits that prompts and answers met, and errors of form, by kind."""

    def play(
        self, tasks: Sequence[AgentTask], on_progress: Callable[[RolloutProgress], None] = lambda progress: None
    ) -> list[Trajectory]:
        """Play one episode per task; return them in the order of the tasks."""
        if not tasks:
            return []
        waiting = deque(enumerate(tasks))
        num_rows = min(self._options.num_slots, len(tasks))
        sessions = self._engine.open(num_rows)
        slots: dict[int, _Slot] = {}
        finished: dict[int, Trajectory] = {}
        while waiting or slots:
            self._fill(slots, waiting, num_rows, sessions)
            finished |= self._take_turn(slots, sessions)
            successes = sum(t.success for t in finished.values())
            used = sessions.num_prefilled + sessions.num_sampled
            on_progress(RolloutProgress(len(finished), len(tasks), successes, used))
        self.num_tokens += sessions.num_prefilled + sessions.num_sampled
        return [finished[i] for i in range(len(tasks))]

    def _fill(
        self, slots: dict[int, _Slot], waiting: deque[tuple[int, AgentTask]], num_rows: int, sessions: TokenStreams
    ) -> None:
        free = [row for row in range(num_rows) if row not in slots][: len(waiting)]
        starting = {row: waiting.popleft() for row in free}
        if not starting:
            return
        states = self._environment.reset({row: task for row, (_, task) in starting.items()})
        for row, (index, task) in starting.items():
            slots[row] = _Slot(index, task, states[row], self._renamings.get(task.task_id, _OWN_NAMES))

    def _take_turn(self, slots: dict[int, _Slot], sessions: TokenStreams) -> dict[int, Trajectory]:
        rows = list(slots)
        seen = [self._look(slots[row], row, sessions) for row in rows]
        sessions.extend(rows, seen)
        sampled = sessions.generate(rows, self._format.sampling(self._options.temperature))
        answers = {row: self._read(slots[row], one) for row, one in zip(rows, sampled, strict=True)}
        full = [row for row, one in zip(rows, sampled, strict=True) if one.out_of_room]
        steps = self._environment.step({row: answer.action for row, answer in answers.items() if row not in full})
        steps |= {row: _without_room(slots[row].state) for row in full}
        return self._finish(slots, answers, steps, sessions)

    def _look(self, slot: _Slot, row: int, sessions: TokenStreams) -> list[int]:
        """Return the tokens that the policy is shown now, and record them in the slot."""
        named = slot.renamings.to_renamed
        slot.shown_state = named(slot.state)
        seen = self._format.next_state(slot.shown_state) if slot.turns else None
        if seen is None:
            sessions.restart(row)
            slot.begin_stream()
            seen = self._format.prompt(renamed_task(slot.task, named), slot.history, slot.shown_state)
        slot.saw(seen.ids)
        self.limits.update(seen.limits)
        return seen.ids

    def _read(self, slot: _Slot, sampled: Sampled) -> Answer:
        """Return what the policy wrote, with the task's own names."""
        slot.append_action(sampled)
        answer, named = self._format.read(sampled), slot.renamings.to_original
        if sampled.out_of_room:
            answer = Answer(MALFORMED, limits=(f"streams full after {self._options.max_episode_tokens} tokens",))
        self.limits.update(answer.limits)
        return replace(answer, action=named(answer.action), thought=named(answer.thought))

    def _finish(
        self, slots: dict[int, _Slot], answers: dict[int, Answer], steps: dict[int, Step], sessions: TokenStreams
    ) -> dict[int, Trajectory]:
        """Record the turn in every slot; remove and return the episodes that it ended."""
        ended: dict[int, Trajectory] = {}
        for row, step in steps.items():
            slot, answer = slots[row], answers[row]
            slot.turns.append(Turn(slot.state, answer.action, step, slot.weight_version, answer.thought))
            slot.history.append((slot.shown_state, slot.renamings.to_renamed(answer.action)))
            slot.state = step.state
            full = sessions.length(row) > self._options.max_episode_tokens
            failure = step.failure or (Failure.TOO_LONG if full and not step.done else None)
            if step.done or failure or len(slot.turns) == self._options.max_steps:
                ended[slot.index] = slots.pop(row).trajectory(self._origin, failure)
        return ended


def _without_room(state: str) -> Step:
    """Return the end of an episode whose stream has no room for an action; the environment is not asked."""
    return Step(state, 0.0, done=True, success=False, failure=Failure.TOO_LONG)
