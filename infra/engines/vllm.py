"""The engine port on vLLM servers, one for each role that models have.

A stream is kept here and sent whole; vLLM's prefix cache knows what it has seen of it.
"""

from collections.abc import Sequence

from infra.engines.vllm_server import Fetch, VllmServer
from infra.settings import settings
from schemas.errors import EngineError
from schemas.sampling import Sampled, Sampling

_servers: dict[str, VllmServer] = {}


def serving(role: str, weights: str, fetch: Fetch, dtype: str) -> "VllmEngine":
    """An engine on the role's server, which is started, or given other weights, if need be.

    Args:
        role: Of each there is one server, and one set of weights at a time.
        weights: Digest of the model.
        fetch: Brings the model's files.
        dtype: That a server is started with.

    Raises:
        EngineError: the server does not start, or does not take the weights.
    """
    server = _servers.get(role)
    if server is None or not server.is_alive:
        server = _servers[role] = VllmServer(settings(), f"vllm {role}", weights, fetch, dtype)
    elif server.weights != weights:
        server.load(weights, fetch)
    return VllmEngine(server)


class VllmEngine:
    """Samples from the weights that its server has now."""

    def __init__(self, server: VllmServer) -> None:
        """An engine that is of no use any more once its server has other weights."""
        self._server, self._weights = server, server.weights

    def open(self, num_rows: int, capacity: int = 0) -> "VllmStreams":
        """Empty streams; the server makes room by itself."""
        return VllmStreams(self, num_rows)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """A continuation of each prompt.

        Raises:
            EngineError: the server has other weights, is gone, or refuses.
        """
        if self._server.weights != self._weights:
            raise EngineError(f"vLLM samples from {self._server.weights[:12]} now, not from {self._weights[:12]}")
        return self._server.complete(prompts, sampling)


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
