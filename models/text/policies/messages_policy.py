"""Policy behind a user's own agent: it is shown the messages that the agent sends, and answers in text."""

from collections.abc import Sequence

from models.text.chat_template import ChatTemplate, conversation_ids
from models.text.policies.policy_format import Answer, Shown
from models.text.prompts import PromptFormat
from schemas.chat import conversation_in
from schemas.errors import InputError
from schemas.recipes.policy import PolicyRecipe
from schemas.records import MALFORMED, AgentTask
from schemas.sampling import Sampled, Sampling

_ONE_MESSAGE = "states that are no conversation of the model's template, shown in one message"


class MessagesPolicy:
    """Prompts are conversations, in the tokens that `dreamgym serve` gives them; an answer is all that the model writes.

    Nothing is left out of a conversation that is too long: its episode has no outcome, as the server would refuse it.
    """

    remembers_episode = False

    def __init__(self, format: PromptFormat, recipe: PolicyRecipe) -> None:
        """Create the format of a policy.

        Args:
            format: Text as tokens.
            recipe: Section with template = "messages".

        Raises:
            InputError: the tokenizer has no usable chat template.
        """
        self._format, self._recipe = format, recipe
        self._template = ChatTemplate.of(format.tokenizer)
        self._end_ids = self._template.ends(format.end_ids)

    def prompt(self, task: AgentTask, history: Sequence[tuple[str, str]], state: str) -> Shown:
        """Return the conversation that the state is. A state that is none, as dreams may have, is one message with the task."""
        messages, tokenizer = conversation_in(state), self._format.tokenizer
        if messages:
            try:
                return Shown(conversation_ids(tokenizer, messages))
            except InputError:  # the template refuses this order of roles
                pass
        one = {"role": "user", "content": f"{task.instruction}\n\n{state}"}
        return Shown(conversation_ids(tokenizer, [one]), (_ONE_MESSAGE,))

    def next_state(self, state: str) -> None:
        """Return nothing: each turn has a prompt of its own."""

    def answer(self, action: str, thought: str = "") -> list[int]:
        """Encode an answer; a thought has no place."""
        return [*self._format.ids(action), self._template.end_id]

    def read(self, sampled: Sampled) -> Answer:
        """Return the whole text; an answer that was cut is refused."""
        if not sampled.ended:
            return Answer(MALFORMED, limits=(f"answers longer than {self._recipe.max_action_tokens} tokens",))
        decode = self._format.tokenizer.decode
        text = decode(sampled.content, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return Answer(text) if text.strip() else Answer(MALFORMED, limits=("answers without text",))

    def sampling(self, temperature: float) -> Sampling:
        """Return how an answer is sampled."""
        return Sampling(self._recipe.max_action_tokens, self._end_ids, temperature)
