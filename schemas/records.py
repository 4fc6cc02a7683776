"""Records that flow between rooms: agent tasks, steps, trajectories, references.

A *group* is a list of trajectories that are compared with each other; each carries the group's id.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

Origin = Literal["real", "dream"]
MALFORMED = "<format error>"
"""Action of a policy's answer that has none. Environments know no such action, so they refuse it."""


class Failure(StrEnum):
    """Reason why a rollout has no outcome. A failed rollout is data, never a reward of 0."""

    UNPARSABLE = "experience model output could not be parsed"
    TOO_LONG = "context is full"
    ENVIRONMENT = "environment raised an error"


@dataclass(frozen=True, slots=True)
class AgentTask:
    """The paper's task tau: an instruction and where to start.

    Example: AgentTask("one-cook-cut/train/7", "recipe: carrot fried diced", "train", "one-cook-cut", 7)
    """

    task_id: str
    instruction: str
    split: str
    family: str
    seed: int = 0
    initial_state: str = ""
    """First state of a generated task, written by the experience model; empty: ask the environment."""
    parent_id: str = ""
    """Id of the task that this one varies; empty for the environment's own tasks."""

    @property
    def generated(self) -> bool:
        """True if no real environment can start it: the task generator wrote it, or it is a snapshot."""
        return bool(self.parent_id)

    @property
    def is_snapshot(self) -> bool:
        """True if it starts in a state in the middle of an episode of its parent."""
        return bool(self.parent_id) and self.task_id.startswith(f"{self.parent_id}#")

    def snapshot(self, label: str, state: str) -> "AgentTask":
        """Return this task as it is in a state in the middle of an episode; the label tells its snapshots apart."""
        return replace(self, task_id=f"{self.task_id}#{label}", initial_state=state, parent_id=self.task_id)


@dataclass(frozen=True, slots=True)
class Step:
    """Response of an environment, real or dreamt, to one action."""

    state: str
    reward: float
    """Outcome reward: 1.0 on the step that succeeds, else 0.0 (paper, section 4.1)."""
    done: bool
    success: bool
    reasoning: str = ""
    demonstrations: tuple[str, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One action of an episode, with the state it was taken in and its outcome."""

    state: str
    action: str
    step: Step
    weight_version: str = ""
    """Digest of the weights that sampled every token of the action; empty if no weights did."""
    thought: str = ""
    """Words of the agent before the action; empty if it does not think."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A token stream exactly as the policy saw and sampled it: token-in, token-out, never re-tokenised.

    Shapes: all three lists have the length of the stream, T.
    """

    ids: list[int]
    is_action: list[bool]
    """True for tokens that the policy sampled; False for those of task and states."""
    logprobs: list[float]
    """Log-probability under the sampling policy; 0.0 where is_action is False."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode of one agent task."""

    task: AgentTask
    origin: Origin
    turns: list[Turn]
    tokens: tuple[Tokens, ...] = ()
    """Tokens that the policy saw and sampled: one stream for the episode, or one per turn."""
    failure: Failure | None = None
    truncated: bool = False
    """True if the episode reached the step limit before it was done."""
    source: str = ""
    """Origin of the actions: expert, noisy expert 0.4, start policy, an imported file."""
    group_id: str = ""
    """Id of the group that the episode was rolled out in, to be compared; empty if it was not."""
    episode_id: str = ""
    """Name of a logged episode, stable when the episode grows; empty: it is named by its content."""

    @property
    def success(self) -> bool:
        """True if the environment reported success on the last step."""
        return bool(self.turns) and self.turns[-1].step.success

    @property
    def reward(self) -> float:
        """Undiscounted return of the episode: 0.0 or 1.0 in a dream, as granted by the environment for real."""
        return sum(turn.step.reward for turn in self.turns)

    @property
    def task_as_it_began(self) -> AgentTask:
        """The task with the first state that was seen, from which a dream of it starts."""
        return replace(self.task, initial_state=self.turns[0].state)

    @property
    def actions(self) -> list[str]:
        """The actions in order."""
        return [turn.action for turn in self.turns]

    def history(self, num_turns: int) -> list[tuple[str, str]]:
        """Return the states of the first turns and the actions taken in them, oldest first."""
        return [(turn.state, turn.action) for turn in self.turns[:num_turns]]


@dataclass(frozen=True, slots=True)
class Reference:
    """A pointer passed between tasks instead of data: where the data is and which digest it must have."""

    uri: str
    sha256: str
    kind: str
    """Kind of the data: model, trajectories, agent tasks, gate."""
    notes: dict[str, float | int | str] = field(default_factory=dict, hash=False)
    """Small facts to show next to the reference: rows, steps, losses."""
