"""Predictors, which write the experience model's predictions and variations of tasks."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Protocol

from models.experience.experience_format import ExperienceFormat
from models.text.policies.policy_format import Shown
from models.text.prompts import TransitionQuery
from schemas.ports import Engine
from schemas.records import AgentTask
from schemas.sampling import Sampled, Sampling

Met = Callable[[Mapping[str, int]], None]
"""Called with the numbers of prompts and answers that met a limit, by limit."""

_BATCH_SIZE = 256
"""Maximum number of situations of a request."""


class Predictor(Protocol):
    """Writer of predictions and task variations in the form of models/text/prompts.py."""

    @property
    def batches_requests(self) -> bool:
        """Whether threads can ask side by side; see `Engine`."""
        ...

    def predict(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        """Write `[think] reasoning [next] changes [outcome] continue|success|failure` for each situation."""
        ...

    def vary(self, tasks: Sequence[AgentTask], temperature: float) -> list[str]:
        """Write `instruction [state] s0` of a variation of each task."""
        ...


class LocalPredictor:
    """Predictor that samples from a network trained on its format; see `Predictor`."""

    def __init__(
        self,
        engine: Engine,
        format: ExperienceFormat,
        max_new_tokens: int,
        top_p: float = 1.0,
        met: Met = lambda _: None,
    ) -> None:
        """Create a predictor that samples from an engine.

        Args:
            engine: Engine with the network's weights.
            format: What the network reads and writes.
            max_new_tokens: Maximum number of tokens of an answer.
            top_p: Nucleus sampling threshold.
            met: Called with the numbers of prompts and answers that met a limit.
        """
        self._engine, self.format, self._max_new_tokens, self._top_p = engine, format, max_new_tokens, top_p
        self._met = met

    @property
    def batches_requests(self) -> bool:
        """Whether threads can ask side by side; see `Engine`."""
        return self._engine.batches_requests

    def predict(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        """Write a prediction for each situation."""
        texts = self._complete([self.format.situation(one) for one in situations], temperature)
        return [self.format.as_prediction(one, text) for one, text in zip(situations, texts, strict=True)]

    def vary(self, tasks: Sequence[AgentTask], temperature: float) -> list[str]:
        """Write a variation of each task."""
        prompts = [self.format.variation_prompt(one, one.initial_state) for one in tasks]
        return [self.format.as_variation(text) for text in self._complete(prompts, temperature)]

    def _complete(self, prompts: Sequence[Shown], temperature: float) -> list[str]:
        """Return the text sampled after each prompt, and count the limits that were met."""
        answers = self.sample([one.ids for one in prompts], temperature)
        limits = Counter(limit for one in prompts for limit in one.limits)
        full = sum(one.out_of_room for one in answers)
        limits[f"answers longer than {self._max_new_tokens} tokens"] += sum(not one.ended for one in answers) - full
        limits["prompts that leave no room for an answer"] += full
        self._met(+limits)
        return [self.text_of(one) for one in answers]

    def text_of(self, sampled: Sampled) -> str:
        """Return sampled tokens as text, without the end marker, which cut-off texts do not have."""
        return self.format.decode(sampled.content)

    def sample(self, prompts: Sequence[list[int]], temperature: float) -> list[Sampled]:
        """Sample tokens after each prompt."""
        rows = range(len(prompts))
        streams = self._engine.open(len(prompts), max(map(len, prompts)) + self._max_new_tokens)
        streams.extend(rows, prompts)
        sampling = Sampling(self._max_new_tokens, self.format.end_ids, temperature, self._top_p)
        return streams.generate(rows, sampling)


class MemoizedPredictor:
    """Predictor that asks another one, at temperature 0 only once in equal situations, which are frequent in groups."""

    def __init__(self, predictor: Predictor) -> None:
        """Begin with nothing asked."""
        self._predictor = predictor
        self._likeliest: dict[TransitionQuery, Future[str]] = {}
        self._one_at_a_time = Lock()

    def predict(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        """Write a prediction for each situation; a thread waits for what another one is asking."""
        if temperature > 0:
            return self._predicted(situations, temperature)
        new = [situation for situation in dict.fromkeys(situations) if self._is_new(situation)]
        try:
            texts = self._predicted(new, temperature)
        except BaseException as error:
            for situation in new:
                self._likeliest.pop(situation).set_exception(error)
            raise
        for situation, text in zip(new, texts, strict=True):
            self._likeliest[situation].set_result(text)
        return [self._likeliest[situation].result() for situation in situations]

    def _is_new(self, situation: TransitionQuery) -> bool:
        """Return whether nobody has asked in a situation; the caller has to ask then."""
        with self._one_at_a_time:
            is_new = situation not in self._likeliest
            if is_new:
                self._likeliest[situation] = Future()
        return is_new

    def _predicted(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        edges = range(0, len(situations), _BATCH_SIZE)
        batches = [self._predictor.predict(situations[start : start + _BATCH_SIZE], temperature) for start in edges]
        return [text for batch in batches for text in batch]
