"""Ports: what the models need from outside, and what environments, annotators and stores must offer.

A slot is a place in a vector of episodes: reset puts an agent task into it, step advances it.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from schemas.records import AgentTask, Step, Trajectory
from schemas.sampling import Sampled, Sampling


class TokenStreams(Protocol):
    """Parallel token streams, one per row, each with its own length."""

    @property
    def num_prefilled(self) -> int:
        """Number of tokens from outside so far, over all rows."""
        ...

    @property
    def num_sampled(self) -> int:
        """Number of sampled tokens so far, over all rows."""
        ...

    def restart(self, row: int) -> None:
        """Clear a row's stream so that another can use its place."""
        ...

    def length(self, row: int) -> int:
        """Return the number of tokens in a row's stream."""
        ...

    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append tokens from outside to rows."""
        ...

    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row up to the end token, and append it to the row's stream."""
        ...


class Engine(Protocol):
    """Sampler for one set of weights: token ids in, token ids out."""

    @property
    def batches_requests(self) -> bool:
        """Whether threads can ask side by side, each with streams of its own, and are answered in one batch."""
        ...

    def open(self, num_rows: int, capacity: int = 256) -> TokenStreams:
        """Return empty streams.

        Args:
            num_rows: Number of streams.
            capacity: Initial number of tokens per row to allocate; it grows.
        """
        ...


class Environment(Protocol):
    """Anything with reset and step, real or dreamt, over many episodes at once."""

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Start an episode in each slot; return the first state of each."""
        ...

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot. An impossible action is answered in text and never raises."""
        ...


class RealEnvironment(Environment, Protocol):
    """A real environment, which also provides tasks, rules and an expert."""

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Return tasks of a split, the same ones for the same arguments."""
        ...

    def expert(self, slot: int) -> str:
        """Return the action that an expert would take now in this slot."""
        ...

    def admissible_actions(self, slot: int) -> list[str]:
        """Return the actions that would change the state now."""
        ...

    def near_misses(self, slot: int) -> list[str]:
        """Return well-formed actions about visible entities, most of which would be refused now."""
        ...

    def names(self, task: AgentTask) -> list[str]:
        """Return replaceable names, which no rule depends on, in this task or in its first state if it has one."""
        ...

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task with its first state is foreign to this environment or unsolvable; None if it is valid."""
        ...


class AdmissibleActions(Protocol):
    """Reader of the admissible actions in a state, for environments whose states list them."""

    def accepts(self, state: str, action: str) -> bool | None:
        """Return whether a state says that it accepts (True) or refuses (False) an action; None if it says neither."""
        ...

    def refused(self, state: str) -> str:
        """Return the state that follows an action that was not accepted."""
        ...


class Progress(Protocol):
    """Reader of how far a state is towards its task's goal, for environments whose states tell."""

    def score(self, task: AgentTask, state: str) -> float:
        """Return the share of the task's subgoals that are done, from 0 to 1; 0 for a state that cannot be read."""
        ...


class Annotator(Protocol):
    """Writer of reasoning traces in hindsight, one per transition of a finished trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> Sequence[list[str] | None]:
        """Return one list per trajectory, with one trace per turn; None for a trajectory that it could not explain."""
        ...


class Encoder(Protocol):
    """Encoder of the text of a (state, action) pair, in the context of its task, as a vector."""

    @property
    def num_dimensions(self) -> int:
        """Length of each vector."""
        ...

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 [N, num_dimensions]."""
        ...


class Demonstrations(Protocol):
    """Retriever of past experience that grounds the experience model."""

    def retrieve(self, queries: Sequence["DemonstrationQuery"], k: int) -> list[list[str]]:
        """Return up to k demonstrations per query, nearest first, never from the query's own trajectory."""
        ...


class DemonstrationQuery(Protocol):
    """Query to the replay store."""

    @property
    def task(self) -> AgentTask:
        """Task of the episode."""
        ...

    @property
    def state(self) -> str:
        """State in which the action is taken."""
        ...

    @property
    def action(self) -> str:
        """Action taken."""
        ...

    @property
    def trajectory_id(self) -> str:
        """Id of the querying trajectory; its own transitions are excluded."""
        ...
