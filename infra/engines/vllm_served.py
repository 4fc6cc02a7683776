"""vLLM server that is restarted when it fails, with the weights and adapters that it had."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import RLock

from infra.engines.vllm_command import ServerOptions
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
        options: ServerOptions,
        say: Callable[[str], None],
        silence_s: float = SILENCE_S,
    ) -> None:
        """Start the server.

        Args:
            settings: Path of the Python that has vLLM.
            name: Name of the role or of what is served, for the log and for messages.
            model: Model to sample from, or to adapt.
            options: How it computes.
            say: Called with a message at each restart.
            silence_s: See VllmServer.

        Raises:
            EngineError: the server does not start.
        """
        self._settings, self._name = settings, name
        self.model, self.options = model, options
        self._say, self._silence_s = say, silence_s
        self._adapters: dict[str, Stored] = {}
        self._restarts: list[float] = []
        self._one_at_a_time = RLock()
        self._start()

    @property
    def held(self) -> list[str]:
        """Digests of the model and of all adapters."""
        return [self.model.digest, *(one.digest for one in self._adapters.values())]

    def load(self, model: Stored) -> None:
        """Switch to another model of the same architecture."""
        self.model = model
        try:
            self._wake()
            self._server.load(model.digest, model.fetch)
        except EngineUnavailable as lost:
            self._start_anew(lost)

    def adapt(self, role: str, adapters: Stored) -> None:
        """Let a role have these adapters; its earlier ones are removed, unless another role has them."""
        earlier, is_held = self._adapters.get(role), adapters.digest in self.held
        self._adapters[role] = adapters
        try:
            self._wake()
            if earlier and earlier.digest not in self.held:
                self._server.remove_adapters(earlier.digest)
            if not is_held:
                self._server.add_adapters(adapters.digest, adapters.fetch)
        except EngineUnavailable as lost:
            self._start_anew(lost)

    def make_room(self, options: ServerOptions) -> None:
        """Start anew if these options ask for longer streams, adapters of a higher rank, or anything else than it has."""
        lengths, ranks = zip(*((one.max_tokens, one.adapter_rank) for one in (options, self.options)), strict=True)
        wanted = replace(options, max_tokens=max(lengths) if all(lengths) else None, adapter_rank=max(ranks))
        if wanted != self.options:
            self.options = wanted
            self.close()
            self._start()

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling, adapters: str = "") -> list[Sampled]:
        """Sample a continuation of each prompt; threads may ask side by side.

        Prompts are complete, so a restarted server can repeat the request.
        """
        while True:
            server = self._server
            try:
                self._wake()
                return server.complete(prompts, sampling, adapters)
            except EngineUnavailable as lost:
                with self._one_at_a_time:
                    if self._server is server:
                        self._start_anew(lost)

    def sleep(self) -> None:
        """Let the server give back its GPU memory until it is asked again, if it may; a dead one is started anew then."""
        if self.options.sleeps and not self._is_asleep:
            self._is_asleep = True
            with suppress(EngineUnavailable):
                self._server.sleep()

    def _wake(self) -> None:
        with self._one_at_a_time:
            if self._is_asleep:
                self._server.wake()
                self._is_asleep = False

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
        name, model = f"vllm {self._name}", self.model
        self._server = VllmServer(self._settings, name, model.digest, model.fetch, self.options, self._silence_s)
        self._is_asleep = False
        for adapters in {one.digest: one for one in self._adapters.values()}.values():
            self._server.add_adapters(adapters.digest, adapters.fetch)

    def close(self) -> None:
        """Stop the server."""
        self._server.close()
