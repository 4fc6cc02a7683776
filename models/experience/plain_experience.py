"""Experience model that reads and writes our own markers: small networks that are made of logs."""

from models.text.policies.policy_format import Shown
from models.text.prompts import PromptFormat, TransitionQuery
from schemas.records import AgentTask, Step
from schemas.state_text import changes_between


class PlainExperience:
    """Format of an experience model in our markers; see `ExperienceFormat`. The next state is its changed lines.

    Differs: the history is the last few actions without their states, and demonstrations are usually an action and what
        it changed: our states list what was seen before, and a small network reads short prompts best.
    """

    def __init__(self, format: PromptFormat) -> None:
        """Create the format over markers and text as tokens."""
        self._format, self.decode = format, format.decode
        self.end_ids = (format.end_id,)

    def situation(self, situation: TransitionQuery) -> Shown:
        """Return the prompt of a prediction or a review."""
        return Shown(self._format.situation(situation))

    def prediction(self, state: str, step: Step, *, with_reasoning: bool = True) -> list[int]:
        """Encode reasoning, changed lines and outcome."""
        return self._format.prediction(step, changes_between(state, step.state), with_reasoning=with_reasoning)

    def as_prediction(self, situation: TransitionQuery, text: str) -> str:
        """Return an answer as it is."""
        del situation
        return text

    def variation_prompt(self, task: AgentTask, state: str) -> Shown:
        """Return the prompt for a variation of a task."""
        return Shown(self._format.variation_prompt(task, state))

    def variation(self, task: AgentTask, state: str) -> list[int]:
        """Encode a variation of a task."""
        return self._format.variation(task, state)

    def as_variation(self, text: str) -> str:
        """Return an answer as it is."""
        return text
