"""The engine port on vLLM servers, one for each role that models have.

A stream is kept here and sent whole; vLLM's prefix cache knows what it has seen of it.
"""

import time
from collections.abc import Callable, Sequence

from infra.engines.vllm_server import SILENCE_S, Fetch, VllmServer
from infra.settings import Settings, settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.sampling import Sampled, Sampling

_MOST_RESTARTS, _WITHIN_S = 3, 3600


class ServedRole:
    """The server of a role that models have, with one set of weights at a time, over restarts."""

    def __init__(
        self,
        settings: Settings,
        role: str,
        weights: str,
        fetch: Fetch,
        dtype: str,
        say: Callable[[str], None],
        silence_s: float = SILENCE_S,
    ) -> None:
        """Start it.

        Args:
            settings: Say which Python has vLLM.
            role: For its log, and to tell of it.
            weights: Digest of the model.
            fetch: Brings the model's files.
            dtype: That it samples in.
            say: Told of restarts.
            silence_s: See VllmServer.

        Raises:
            EngineError: it does not start.
        """
        self._settings, self._role, self._dtype = settings, role, dtype
        self.weights, self._fetch = weights, fetch
        self._say, self._silence_s = say, silence_s
        self._restarts: list[float] = []
        self._server = self._started()

    def _started(self) -> VllmServer:
        name = f"vllm {self._role}"
        return VllmServer(self._settings, name, self.weights, self._fetch, self._dtype, self._silence_s)

    def load(self, weights: str, fetch: Fetch) -> None:
        """Go on with other weights of the same architecture."""
        self.weights, self._fetch = weights, fetch
        try:
            self._server.load(weights, fetch)
        except EngineUnavailable as lost:
            self._start_anew(lost)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """A continuation of each prompt. Whoever asks has the whole of them, so a new server can be asked the same."""
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
        self._say(f"started vLLM for the {self._role} anew: {str(lost).splitlines()[0]}")
        self._restarts.append(now)
        self._server = self._started()

    def close(self) -> None:
        """End the server."""
        self._server.close()


_served: dict[str, ServedRole] = {}


def serving(role: str, weights: str, fetch: Fetch, dtype: str, say: Callable[[str], None]) -> "VllmEngine":
    """An engine on the role's server, which is started, or given other weights, if need be; see ServedRole."""
    served = _served.get(role)
    if served is None:
        served = _served[role] = ServedRole(settings(), role, weights, fetch, dtype, say)
    elif served.weights != weights:
        served.load(weights, fetch)
    return VllmEngine(served)


class VllmEngine:
    """Samples from the weights that its role has now."""

    def __init__(self, served: ServedRole) -> None:
        """An engine that is of no use any more once its role has other weights."""
        self._served, self._weights = served, served.weights

    def open(self, num_rows: int, capacity: int = 0) -> "VllmStreams":
        """Empty streams; the server makes room by itself."""
        return VllmStreams(self, num_rows)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """A continuation of each prompt.

        Raises:
            EngineError: the role has other weights, or its server refuses, or was lost too often.
        """
        if self._served.weights != self._weights:
            raise EngineError(f"vLLM samples from {self._served.weights[:12]} now, not from {self._weights[:12]}")
        return self._served.complete(prompts, sampling)


class VllmStreams:
    """Token streams side by side; see the port."""

    def __init__(self, engine: VllmEngine, num_rows: int) -> None:
        """Empty streams."""
        self._engine = engine
        self._ids: list[list[int]] = [[] for _ in range(num_rows)]
        self.num_prefilled = 0
        self.num_sampled = 0

    def restart(self, row: int) -> None:
        """Forget a row's stream."""
        self._ids[row] = []

    def length(self, row: int) -> int:
        """Tokens of a row's stream so far."""
        return len(self._ids[row])

    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append tokens from outside."""
        for row, new in zip(rows, ids, strict=True):
            self._ids[row].extend(new)
            self.num_prefilled += len(new)

    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row, all at once."""
        sampled = self._engine.complete([self._ids[row] for row in rows], sampling)
        for row, one in zip(rows, sampled, strict=True):
            self._ids[row].extend(one.ids)
            self.num_sampled += len(one.ids)
        return sampled
