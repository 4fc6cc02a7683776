"""Predictors, which write the experience model's predictions and variations of tasks."""

from collections.abc import Sequence
from typing import Protocol

from models.text.prompts import PromptFormat, TransitionQuery
from schemas.ports import Engine
from schemas.records import AgentTask
from schemas.sampling import Sampled, Sampling


class Predictor(Protocol):
    """Writer of predictions and task variations in the form of models/text/prompts.py."""

    def predict(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        """Write `[think] reasoning [next] changes [outcome] continue|success|failure` for each situation."""
        ...

    def vary(self, tasks: Sequence[AgentTask], temperature: float) -> list[str]:
        """Write `instruction [state] s0` of a variation of each task."""
        ...


class LocalPredictor:
    """Predictor that samples from a network trained on the prompt format; see `Predictor`."""

    def __init__(self, engine: Engine, format: PromptFormat, max_new_tokens: int, top_p: float = 1.0) -> None:
        """Create a predictor that samples from an engine."""
        self._engine, self._format, self._max_new_tokens, self._top_p = engine, format, max_new_tokens, top_p

    def predict(self, situations: Sequence[TransitionQuery], temperature: float) -> list[str]:
        """Write a prediction for each situation."""
        return self._complete([self._format.situation(one) for one in situations], temperature)

    def vary(self, tasks: Sequence[AgentTask], temperature: float) -> list[str]:
        """Write a variation of each task."""
        return self._complete([self._format.variation_prompt(one, one.initial_state) for one in tasks], temperature)

    def _complete(self, prompts: Sequence[list[int]], temperature: float) -> list[str]:
        """Return the text sampled after each prompt."""
        return [self.text_of(one) for one in self.sample(prompts, temperature)]

    def text_of(self, sampled: Sampled) -> str:
        """Return sampled tokens as text, without the end marker, which cut-off texts do not have."""
        return self._format.decode(sampled.ids[:-1] if sampled.ended else sampled.ids)

    def sample(self, prompts: Sequence[list[int]], temperature: float) -> list[Sampled]:
        """Sample tokens after each prompt."""
        rows = range(len(prompts))
        streams = self._engine.open(len(prompts), max(map(len, prompts)))
        streams.extend(rows, prompts)
        sampling = Sampling(self._max_new_tokens, (self._format.end_id,), temperature, self._top_p)
        return streams.generate(rows, sampling)
