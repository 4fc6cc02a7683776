"""Engine port on a chat model at an endpoint, whose tokens are not known: an id is a character.

A stream is one message of the user. Log-probabilities are 0, so nothing can be trained on what is sampled.
"""

from collections.abc import Sequence

from infra.engines.endpoint import Endpoint
from schemas.chat import Question
from schemas.sampling import HeldStreams, Sampled, Sampling


class ChatEngine:
    """Engine that asks an endpoint; see `schemas.ports.Engine`."""

    batches_requests = False  # seeds depend on the order of the questions

    def __init__(self, endpoint: Endpoint, seed: int, version: str) -> None:
        """Create an engine.

        Args:
            endpoint: Endpoint with the model.
            seed: Seed of sampled answers, which some endpoints ignore.
            version: Digest that names the model.
        """
        self._endpoint, self.version = endpoint, version
        self._seed, self._num_asked = seed, 0

    def open(self, num_rows: int, capacity: int = 0) -> "ChatStreams":
        """Return empty streams; `capacity` is ignored."""
        return ChatStreams(self, num_rows)

    def complete(self, texts: Sequence[str], sampling: Sampling) -> list[Sampled]:
        """Return the answer to each message, as characters.

        Raises:
            EngineError: the endpoint refuses, or does not answer.
        """
        first = self._seed + self._num_asked
        self._num_asked += len(texts)
        temperature, limit = sampling.temperature, sampling.max_new_tokens
        questions = [
            Question("", text, temperature, first + number, sampling.top_p, as_json=False, max_tokens=limit)
            for number, text in enumerate(texts)
        ]
        end = sampling.end_ids[0]
        answers = [
            ([*map(ord, one.text), *([end] if one.is_whole else [])], one.is_whole)
            for one in self._endpoint.write(questions)
        ]
        return [Sampled(ids, [0.0] * len(ids), is_whole, self.version) for ids, is_whole in answers]


class ChatStreams(HeldStreams):
    """Messages, one per row, in characters."""

    def __init__(self, engine: ChatEngine, num_rows: int) -> None:
        """Create empty streams."""
        super().__init__(num_rows)
        self._engine = engine

    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Ask for an answer to each row's message, all at once."""
        texts = ["".join(map(chr, self.ids[row])) for row in rows]
        sampled = self._engine.complete(texts, sampling)
        self.append(dict(zip(rows, sampled, strict=True)))
        return sampled
