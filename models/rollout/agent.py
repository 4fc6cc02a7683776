"""A policy outside of rollouts: one state in, one action out."""

from collections.abc import Sequence

from models.text.policies.policy_format import PolicyFormat
from schemas.errors import InputError
from schemas.ports import Engine
from schemas.records import AgentTask


class Agent:
    """Policy that is asked for one action at a time, and is shown what it would see in a rollout."""

    def __init__(self, engine: Engine, format: PolicyFormat) -> None:
        """Create an agent.

        Args:
            engine: Engine that samples actions.
            format: What the policy reads and writes.
        """
        self._engine, self._format = engine, format

    def act(
        self,
        task: AgentTask | str,
        state: str,
        history: Sequence[tuple[str, str]] = (),
        *,
        temperature: float = 0.0,
    ) -> str:
        """Return the policy's action in a state.

        Args:
            task: Agent task, or its instruction.
            state: Present state, as the environment writes it.
            history: States and actions before this one, oldest first.
            temperature: Sampling temperature; 0 is greedy.

        Raises:
            InputError: task, history and state leave no room for an action.
        """
        stream = self._engine.open(1)
        ids = self._format.prompt(_as_task(task), history, state).ids
        stream.extend([0], [ids])
        (sampled,) = stream.generate([0], self._format.sampling(temperature))
        if sampled.out_of_room:
            raise InputError(f"a prompt of {len(ids)} tokens leaves no room for an action: shorten state and history")
        return self._format.read(sampled).action


def _as_task(task: AgentTask | str) -> AgentTask:
    return AgentTask("", task, split="", family="") if isinstance(task, str) else task
