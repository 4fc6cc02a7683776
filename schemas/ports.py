"""What the models need from outside, and what environments, annotators and stores must offer.

A slot is a place in a vector of episodes: reset puts an agent task into it, step moves it on.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from schemas.records import AgentTask, Step, Trajectory
from schemas.sampling import Sampled, Sampling


class TokenStreams(Protocol):
    """Token streams side by side, one per row, each with its own length."""

    @property
    def num_prefilled(self) -> int:
        """Tokens from outside so far, all rows together."""
        ...

    @property
    def num_sampled(self) -> int:
        """Tokens that were sampled so far, all rows together."""
        ...

    def restart(self, row: int) -> None:
        """Forget a row's stream, so that another can use its place."""
        ...

    def length(self, row: int) -> int:
        """Tokens of a row's stream so far."""
        ...

    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append tokens from outside to rows."""
        ...

    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row until the end token; it is a part of the row's stream from then on."""
        ...


class Engine(Protocol):
    """Samples from one set of weights: token ids in, token ids out."""

    def open(self, num_rows: int, capacity: int = 256) -> TokenStreams:
        """Empty streams.

        Args:
            num_rows: How many.
            capacity: Tokens per row to make room for at first; it grows.
        """
        ...


class Environment(Protocol):
    """Anything with reset and step, real or dreamt, over many episodes at once."""

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Start an episode in each slot; return the first state of each."""
        ...

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot. An impossible action answers in text and never raises."""
        ...


class RealEnvironment(Environment, Protocol):
    """A real environment: it also knows its tasks, its rules and a way to solve them."""

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Tasks of a split, the same for the same arguments."""
        ...

    def expert(self, slot: int) -> str:
        """The action that an expert would take now in this slot."""
        ...

    def admissible_actions(self, slot: int) -> list[str]:
        """Actions that would change the state now."""
        ...

    def near_misses(self, slot: int) -> list[str]:
        """Well-formed actions about what is in sight, most of them refused now."""
        ...

    def names(self, task: AgentTask) -> list[str]:
        """Names in this task, or in its first state if it has one, that no rule depends on: they may be replaced."""
        ...

    def task_error(self, task: AgentTask) -> str | None:
        """Why a task, with its first state, is none of this environment's or cannot be solved; None if it is fine."""
        ...


class AdmissibleActions(Protocol):
    """How to read in a state what it accepts: of environments whose states list that."""

    def accepts(self, state: str, action: str) -> bool | None:
        """Whether a state says that it accepts an action, or that it does not; None where it says neither."""
        ...

    def refused(self, state: str) -> str:
        """The state that follows where an action was not accepted."""
        ...


class Annotator(Protocol):
    """Writes in hindsight one reasoning trace per transition of a finished trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One list per trajectory, one trace per turn."""
        ...


class Encoder(Protocol):
    """Turns the text of a (state, action) pair, in the context of its task, into a vector."""

    @property
    def num_dimensions(self) -> int:
        """Length of each vector."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 [N, num_dimensions]."""
        ...


class Demonstrations(Protocol):
    """Retrieves past experience to ground the experience model."""

    def retrieve(self, queries: Sequence["DemonstrationQuery"], k: int) -> list[list[str]]:
        """Up to k demonstrations per query, nearest first, never from the query's own trajectory."""
        ...


class DemonstrationQuery(Protocol):
    """What is asked of the replay store."""

    @property
    def task(self) -> AgentTask:
        """Whose task."""
        ...

    @property
    def state(self) -> str:
        """The state that the action meets."""
        ...

    @property
    def action(self) -> str:
        """What is done."""
        ...

    @property
    def trajectory_id(self) -> str:
        """Of the trajectory that asks; its own transitions are not shown to it."""
        ...
