"""Demonstrations as the experience model is shown them: past transitions that ground its predictions (paper, Eq. 4)."""

from models.experience.experience_prompt import answer
from models.text.prompts import demonstration_text
from schemas.recipes.data import DemonstrationForm
from schemas.records import AgentTask, Turn
from schemas.state_text import changes_between, free_text


def demonstration_of(task: AgentTask, turn: Turn, form: DemonstrationForm) -> str:
    """Return a transition as a demonstration: its action and what it changed, or all that a prediction consists of."""
    if form == "changes":
        return demonstration_text(turn.action, changes_between(turn.state, turn.step.state))
    shown = f"Task: {task.instruction}\nState:\n{free_text(turn.state)}\nAction: {turn.action}\n"
    return shown + answer(turn.state, turn.step, "auto")
