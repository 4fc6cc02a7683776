"""A chat model as experience model and task generator, instructed by prompts instead of trained (paper, C.2)."""

from collections import Counter
from collections.abc import Sequence

from models.experience.experience_answer import as_prediction, as_variation
from models.experience.experience_prompt import VARY, instructions, task_in_tags
from models.experience.predictors import Met
from models.experience.situation_in_budget import situation_in_budget
from models.text.characters import CHARACTERS_PER_TOKEN, Characters
from models.text.policies.policy_format import Shown
from models.text.prompts import TransitionQuery
from schemas.chat import ChatModel, IsFine, Question
from schemas.recipes.networks import NextState
from schemas.records import AgentTask

_CHARACTERS = Characters()


class ChatPredictor:
    """Predictor that queries a chat model; see `Predictor`. Its prompts are those of `experience_prompt`."""

    batches_requests = False  # seeds depend on the order of the questions

    def __init__(
        self,
        chat: ChatModel,
        seed: int,
        top_p: float = 1.0,
        next_state: NextState = "auto",
        max_prompt_tokens: int = 4_096,
        met: Met = lambda _: None,
    ) -> None:
        """Create a predictor that samples the same answers for the same seed and the same sequence of questions.

        Args:
            chat: Chat model.
            seed: Seed of the sampling.
            top_p: Nucleus sampling threshold.
            next_state: Form of the next state in its answers.
            max_prompt_tokens: Tokens of a prompt, counted as four characters each; see situation_in_budget.
            met: Called with the numbers of prompts that met a limit.
        """
        self._chat, self._seed, self._num_drawn, self._top_p = chat, seed, 0, top_p
        self._next_state: NextState = next_state
        self._max_characters = max_prompt_tokens * CHARACTERS_PER_TOKEN
        self._met = met

    def predict(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        """Write a prediction for each situation; unusable answers are returned as the model wrote them."""
        messages = [self._message(one) for one in situations]
        self._met(Counter(limit for one in messages for limit in one.limits))
        asked = [
            (instructions(one, self._next_state), _CHARACTERS.decode(shown.ids))
            for one, shown in zip(situations, messages, strict=True)
        ]
        answers = self._answers(asked, temperature, lambda i, text: as_prediction(situations[i], text) is not None)
        return [as_prediction(one, text) or text for one, text in zip(situations, answers, strict=True)]

    def vary(self, tasks: Sequence[AgentTask], temperature: float) -> list[str]:
        """Write a variation of each task; unusable answers are returned as the model wrote them."""
        asked = [(VARY, task_in_tags(one, one.initial_state)) for one in tasks]
        answers = self._answers(asked, temperature, lambda _, text: as_variation(text) is not None)
        return [as_variation(text) or text for text in answers]

    def _message(self, situation: TransitionQuery) -> Shown:
        """Return the characters of a situation's message, with as much history and as many demonstrations as fit."""
        return situation_in_budget(situation, self._next_state, self._max_characters, _CHARACTERS.ids, ([], []))

    def _answers(self, asked: Sequence[tuple[str, str]], temperature: float, is_fine: IsFine) -> list[str]:
        """Answer each question; equal questions have equal seeds, and so equal answers, at temperature 0 only."""
        first = self._seed + self._num_drawn
        seeds = [first + i if temperature else 0 for i in range(len(asked))]
        self._num_drawn += len(asked)
        questions = [
            Question(system, user, temperature, seed, self._top_p, as_json=False)
            for (system, user), seed in zip(asked, seeds, strict=True)
        ]
        return self._chat.answer(questions, is_fine)
