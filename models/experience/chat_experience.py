"""Experience model that is an instruct network: prompts in its own chat template, answers in tags."""

from models.experience.experience_answer import as_prediction, as_variation
from models.experience.experience_prompt import VARY, answer, instructions, task_in_tags
from models.experience.situation_in_budget import situation_in_budget
from models.text.chat_template import ChatTemplate
from models.text.policies.policy_format import Shown
from models.text.prompts import PromptFormat, TransitionQuery
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import AgentTask, Step


class ChatExperience:
    """Format of an experience model with a chat template; see `ExperienceFormat`.

    Shown are task, history of states and actions, whole demonstrations, state and action (paper, Eq. 4), in one message of
    the user, since not every template knows instructions of a system. Text of logs is encoded without special tokens.
    """

    def __init__(self, format: PromptFormat, recipe: ExperienceRecipe) -> None:
        """Create the format of an experience model.

        Args:
            format: Text as tokens.
            recipe: Section with template = "chat".

        Raises:
            InputError: the tokenizer has no usable chat template.
        """
        self._format, self._recipe, self.decode = format, recipe, format.decode
        self._template = ChatTemplate.of(format.tokenizer)
        self.end_ids = self._template.ends(format.end_ids)

    def situation(self, situation: TransitionQuery) -> Shown:
        """Return the prompt of a prediction or a review, within the recipe's budget."""
        recipe, template = self._recipe, self._template
        said = instructions(situation, recipe.next_state, with_reasoning=recipe.with_reasoning)
        around = [*template.before, *self._format.ids(f"{said}\n\n")], [*template.between]
        budget = recipe.max_prompt_tokens
        return situation_in_budget(situation, recipe.next_state, budget, self._format.ids, around)

    def prediction(self, state: str, step: Step, *, with_reasoning: bool = True) -> list[int]:
        """Encode reasoning, next state and outcome in their tags."""
        text = answer(state, step, self._recipe.next_state, with_reasoning=with_reasoning)
        return [*self._format.ids(text), self._template.end_id]

    def as_prediction(self, situation: TransitionQuery, text: str) -> str:
        """Return an answer in our markers; as it is if it is no valid prediction."""
        return as_prediction(situation, text) or text

    def variation_prompt(self, task: AgentTask, state: str) -> Shown:
        """Return the prompt for a variation of a task."""
        template = self._template
        return Shown([*template.before, *self._format.ids(f"{VARY}\n\n{task_in_tags(task, state)}"), *template.between])

    def variation(self, task: AgentTask, state: str) -> list[int]:
        """Encode a variation of a task in its tags."""
        return [*self._format.ids(task_in_tags(task, state)), self._template.end_id]

    def as_variation(self, text: str) -> str:
        """Return an answer as instruction and first state; as it is if it is no valid task."""
        return as_variation(text) or text
