"""Engine port on vLLM servers, one server per role.

A stream is stored here and sent whole with each request; vLLM's prefix cache skips the part it has already computed.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from infra.engines.vllm_server import SILENCE_S, Fetch, VllmServer
from infra.settings import Settings, settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.sampling import HeldStreams, Sampled, Sampling

_MOST_RESTARTS, _WITHIN_S = 3, 3600


class ServedRole:
    """vLLM server of one role. It holds one set of weights at a time and is restarted when it fails."""

    def __init__(
        self,
        settings: Settings,
        role: str,
        weights: str,
        fetch: Fetch,
        dtype: str,
        say: Callable[[str], None],
        silence_s: float = SILENCE_S,
        max_tokens: int | None = None,
    ) -> None:
        """Start the server.

        Args:
            settings: Path of the Python that has vLLM.
            role: Name of the role, for the log and for messages.
            weights: Digest of the model.
            fetch: Writes the model's files into a folder.
            dtype: Data type for sampling.
            say: Called with a message at each restart.
            silence_s: See VllmServer.
            max_tokens: Tokens of a stream; None: the model's whole context.

        Raises:
            EngineError: the server does not start.
        """
        self._settings, self._role, self._dtype = settings, role, dtype
        self.weights, self._fetch, self.max_tokens = weights, fetch, max_tokens
        self._say, self._silence_s = say, silence_s
        self._restarts: list[float] = []
        self._server = self._started()

    def _started(self) -> VllmServer:
        name = f"vllm {self._role}"
        return VllmServer(
            self._settings, name, self.weights, self._fetch, self._dtype, self._silence_s, self.max_tokens
        )

    def load(self, weights: str, fetch: Fetch) -> None:
        """Switch to other weights of the same architecture."""
        self.weights, self._fetch = weights, fetch
        try:
            self._server.load(weights, fetch)
        except EngineUnavailable as lost:
            self._start_anew(lost)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each prompt. Prompts are complete, so a restarted server can repeat the request."""
        while True:
            try:
                return self._server.complete(prompts, sampling)
            except EngineUnavailable as lost:
                self._start_anew(lost)

    def _start_anew(self, lost: EngineUnavailable) -> None:
        now = time.monotonic()
        self._restarts = [then for then in self._restarts if now - then < _WITHIN_S]
        self.close()
        if len(self._restarts) == _MOST_RESTARTS:
            raise lost
        self._say(f"restarted vLLM for the {self._role}: {str(lost).splitlines()[0]}")
        self._restarts.append(now)
        self._server = self._started()

    def close(self) -> None:
        """Stop the server."""
        self._server.close()


_served: dict[str, ServedRole] = {}


def serving(
    role: str, weights: str, fetch: Fetch, dtype: str, say: Callable[[str], None], max_tokens: int
) -> "VllmEngine":
    """Return an engine on the role's server, starting it or loading other weights if necessary; see ServedRole.

    A server with streams of another length is replaced.
    """
    served = _served.get(role)
    if served is not None and served.max_tokens != max_tokens:
        _served.pop(role).close()
        served = None
    if served is None:
        served = _served[role] = ServedRole(settings(), role, weights, fetch, dtype, say, max_tokens=max_tokens)
    elif served.weights != weights:
        served.load(weights, fetch)
    return VllmEngine(served)


class VllmEngine:
    """Engine that samples from the weights its role had when the engine was created."""

    def __init__(self, served: ServedRole) -> None:
        """Bind the engine to the current weights of the role. It becomes invalid when the role loads other weights."""
        self._served, self.weights, self.max_tokens = served, served.weights, served.max_tokens

    def open(self, num_rows: int, capacity: int = 0) -> "VllmStreams":
        """Return empty streams; `capacity` is ignored because the server manages its memory."""
        return VllmStreams(self, num_rows)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each prompt.

        Raises:
            EngineError: the role has other weights now, the server refuses, or it failed too often.
        """
        if self._served.weights != self.weights:
            raise EngineError(f"vLLM samples from {self._served.weights[:12]} now, not from {self.weights[:12]}")
        return self._served.complete(prompts, sampling)


class VllmStreams(HeldStreams):
    """Token streams, one per row."""

    def __init__(self, engine: VllmEngine, num_rows: int) -> None:
        """Create empty streams."""
        super().__init__(num_rows)
        self._engine = engine

    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row: one request, and one for each number of tokens that full streams have left."""
        by_room: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            by_room[sampling.room(self.length(row), self._engine.max_tokens)].append(row)
        sampled: dict[int, Sampled] = {}
        for room, some in by_room.items():
            sampled |= zip(some, self._within(room, some, sampling), strict=True)
        self.append(sampled)
        return [sampled[row] for row in rows]

    def _within(self, room: int, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample at most as many tokens as there is room for; without room nothing is asked."""
        if not room:
            return [Sampled([], [], False, self._engine.weights, out_of_room=True) for _ in rows]
        answers = self._engine.complete([self.ids[row] for row in rows], replace(sampling, max_new_tokens=room))
        is_short = room < sampling.max_new_tokens
        return [replace(one, out_of_room=is_short and not one.ended) for one in answers]
