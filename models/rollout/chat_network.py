"""A network of ours that answers questions in its own chat template, as a model at an endpoint does."""

from collections import Counter
from collections.abc import Sequence

from models.experience.predictors import Met
from models.text.chat_template import ChatTemplate, conversation_ids
from models.text.prompts import PromptFormat
from schemas.chat import IsFine, Question
from schemas.ports import Engine
from schemas.sampling import Sampled, Sampling

_BATCH_SIZE = 16


class ChatNetwork:
    """`ChatModel` on an engine. Answers are greedy, so a question is asked once: a second answer would be the same."""

    def __init__(
        self,
        engine: Engine,
        format: PromptFormat,
        max_prompt_tokens: int,
        max_new_tokens: int,
        met: Met = lambda _: None,
    ) -> None:
        """Create it.

        Args:
            engine: Engine that samples answers.
            format: Text as tokens.
            max_prompt_tokens: Maximum length of a question; a longer one is not asked, and its answer is empty.
            max_new_tokens: Maximum length of an answer.
            met: Called with the numbers of questions and answers that met a limit.

        Raises:
            InputError: the tokenizer has no usable chat template.
        """
        self._engine, self._tokenizer, self._met = engine, format.tokenizer, met
        self._max_prompt_tokens, self._max_new_tokens = max_prompt_tokens, max_new_tokens
        self._end_ids = ChatTemplate.of(format.tokenizer).ends(format.end_ids)

    def answer(self, questions: Sequence[Question], is_fine: IsFine, num_attempts: int = 1) -> list[str]:
        """Answer the questions, whatever temperature they ask for; an answer may be unusable."""
        prompts = [self._prompt(one) for one in questions]
        asked = [number for number, ids in enumerate(prompts) if len(ids) <= self._max_prompt_tokens]
        answers = [""] * len(prompts)
        limits = Counter({f"questions longer than {self._max_prompt_tokens} tokens": len(prompts) - len(asked)})
        for start in range(0, len(asked), _BATCH_SIZE):
            batch = asked[start : start + _BATCH_SIZE]
            written = self._sampled([prompts[number] for number in batch])
            limits[f"answers longer than {self._max_new_tokens} tokens"] += sum(not one.ended for one in written)
            for number, one in zip(batch, written, strict=True):
                answers[number] = self._text(one)
        self._met(+limits)
        return answers

    def _prompt(self, question: Question) -> list[int]:
        """Encode instructions and input as one message of the user, since not every template knows a system."""
        message = {"role": "user", "content": f"{question.system}\n\n{question.user}"}
        return conversation_ids(self._tokenizer, [message])

    def _sampled(self, prompts: Sequence[list[int]]) -> list[Sampled]:
        rows = range(len(prompts))
        streams = self._engine.open(len(prompts), max(map(len, prompts)))
        streams.extend(rows, prompts)
        return streams.generate(rows, Sampling(self._max_new_tokens, self._end_ids, temperature=0.0))

    def _text(self, sampled: Sampled) -> str:
        return self._tokenizer.decode(sampled.content, skip_special_tokens=True, clean_up_tokenization_spaces=False)
