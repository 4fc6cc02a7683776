"""A policy outside of rollouts: one state in, one action out."""

from collections.abc import Sequence

from models.rollout.rollouts import MAX_ACTION_TOKENS, action_in
from models.text.prompts import PromptFormat
from schemas.ports import Engine
from schemas.recipes.learning import StartRecipe
from schemas.records import AgentTask
from schemas.sampling import Sampling


class Agent:
    """Policy that is asked for one action at a time, and is shown what it would see in a rollout."""

    def __init__(self, engine: Engine, format: PromptFormat, start: StartRecipe) -> None:
        """Create an agent.

        Args:
            engine: Engine that samples actions.
            format: Format of the policy's prompts.
            start: Section that says what the policy was shown in training.
        """
        self._engine, self._format, self._start = engine, format, start

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
        """
        stream = self._engine.open(1)
        before = self._format.episode_so_far(_as_task(task), history, self._start)
        stream.extend([0], [before + self._format.state(state)])
        sampling = Sampling(MAX_ACTION_TOKENS, (self._format.end_id,), temperature)
        (sampled,) = stream.generate([0], sampling)
        return action_in(self._format, sampled)


def _as_task(task: AgentTask | str) -> AgentTask:
    return AgentTask("", task, split="", family="") if isinstance(task, str) else task
