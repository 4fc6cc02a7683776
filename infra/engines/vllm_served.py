"""vLLM server that is restarted when it fails, with the weights and adapters that it had."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.engines.vllm_server import SILENCE_S, Fetch, VllmServer
from infra.settings import Settings
from schemas.errors import EngineUnavailable
from schemas.sampling import Sampled, Sampling

_MOST_RESTARTS, _WITHIN_S = 3, 3600


@dataclass(frozen=True, slots=True)
class Stored:
    """Stored weights: a whole model, or adapters."""

    digest: str
    fetch: Fetch
    """Writes their files into a folder."""


class ServedModel:
    """vLLM server of one model at a time. Adapters over it are held by role, so that several roles can share it."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        model: Stored,
        dtype: str,
        say: Callable[[str], None],
        silence_s: float = SILENCE_S,
        max_tokens: int | None = None,
        adapter_rank: int = 0,
    ) -> None:
        """Start the server.

        Args:
            settings: Path of the Python that has vLLM.
            name: Name of the role or of what is served, for the log and for messages.
            model: Model to sample from, or to adapt.
            dtype: Data type for sampling.
            say: Called with a message at each restart.
            silence_s: See VllmServer.
            max_tokens: Tokens of a stream; None: the model's whole context.
            adapter_rank: Maximum rank of adapters; 0: it takes none.

        Raises:
            EngineError: the server does not start.
        """
        self._settings, self._name, self._dtype = settings, name, dtype
        self.model, self.max_tokens, self._adapter_rank = model, max_tokens, adapter_rank
        self._say, self._silence_s = say, silence_s
        self._adapters: dict[str, Stored] = {}
        self._restarts: list[float] = []
        self._start()

    @property
    def held(self) -> list[str]:
        """Digests of the model and of all adapters."""
        return [self.model.digest, *(one.digest for one in self._adapters.values())]

    def load(self, model: Stored) -> None:
        """Switch to another model of the same architecture."""
        self.model = model
        try:
            self._server.load(model.digest, model.fetch)
        except EngineUnavailable as lost:
            self._start_anew(lost)

    def adapt(self, role: str, adapters: Stored) -> None:
        """Let a role have these adapters; its earlier ones are removed, unless another role has them."""
        earlier, is_held = self._adapters.get(role), adapters.digest in self.held
        self._adapters[role] = adapters
        try:
            if earlier and earlier.digest not in self.held:
                self._server.remove_adapters(earlier.digest)
            if not is_held:
                self._server.add_adapters(adapters.digest, adapters.fetch)
        except EngineUnavailable as lost:
            self._start_anew(lost)

    def make_room(self, max_tokens: int, adapter_rank: int) -> None:
        """Start anew if streams may now be longer, or adapters have a higher rank."""
        longest = self.max_tokens and max(max_tokens, self.max_tokens)
        highest = max(adapter_rank, self._adapter_rank)
        if (longest, highest) != (self.max_tokens, self._adapter_rank):
            self.max_tokens, self._adapter_rank = longest, highest
            self.close()
            self._start()

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling, adapters: str = "") -> list[Sampled]:
        """Sample a continuation of each prompt. Prompts are complete, so a restarted server can repeat the request."""
        while True:
            try:
                return self._server.complete(prompts, sampling, adapters)
            except EngineUnavailable as lost:
                self._start_anew(lost)

    def _start_anew(self, lost: EngineUnavailable) -> None:
        now = time.monotonic()
        self._restarts = [then for then in self._restarts if now - then < _WITHIN_S]
        self.close()
        if len(self._restarts) == _MOST_RESTARTS:
            raise lost
        self._say(f"restarted vLLM for the {self._name}: {str(lost).splitlines()[0]}")
        self._restarts.append(now)
        self._start()

    def _start(self) -> None:
        self._server = VllmServer(
            self._settings,
            f"vllm {self._name}",
            self.model.digest,
            self.model.fetch,
            self._dtype,
            self._silence_s,
            self.max_tokens,
            self._adapter_rank,
        )
        for adapters in {one.digest: one for one in self._adapters.values()}.values():
            self._server.add_adapters(adapters.digest, adapters.fetch)

    def close(self) -> None:
        """Stop the server."""
        self._server.close()
