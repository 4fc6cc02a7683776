"""Engine port on vLLM servers: one for each role, or one for all roles whose models are adapters over the same weights.

A stream is stored here and sent whole with each request; vLLM's prefix cache skips the part it has already computed.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from infra.engines.vllm_command import ServerOptions
from infra.engines.vllm_served import ServedModel, Stored
from infra.running.gpu_memory import before_training
from infra.settings import settings
from schemas.errors import EngineError
from schemas.sampling import HeldStreams, Sampled, Sampling

_served: dict[str, ServedModel] = {}
"""Servers by the role whose whole models they sample from, or by the weights that adapters are over and the GPUs."""
_server_of: dict[str, str] = {}
"""Key of the server that a role uses."""


def serving(role: str, model: Stored, options: ServerOptions, say: Callable[[str], None]) -> "VllmEngine":
    """Return an engine on the role's own server, starting it or loading another model if necessary; see ServedModel.

    A server with other options, such as streams of another length, is replaced.
    """
    _use(role, role)
    served = _served.get(role)
    if served is not None and served.options != options:
        _served.pop(role).close()
        served = None
    if served is None:
        served = _served[role] = ServedModel(settings(), role, model, options, say)
    elif served.model.digest != model.digest:
        served.load(model)
    return VllmEngine(served)


def serving_adapters(
    role: str, base: Stored, adapters: Stored, options: ServerOptions, say: Callable[[str], None]
) -> "VllmEngine":
    """Return an engine on the server of the weights beneath adapters, which roles on the same GPUs share.

    Adapters take effect without a restart; longer streams or a higher rank start the server anew.

    Args:
        role: Role that samples; it has one set of adapters at a time.
        base: Model beneath the adapters.
        adapters: The role's adapters.
        options: How the server computes, with the rank of the adapters.
        say: Called with a message at each restart.
    """
    key = " ".join([base.digest, *map(str, options.gpus)])
    _use(role, key)
    served = _served.get(key)
    if served is None:
        served = _served[key] = ServedModel(settings(), "adapters", base, options, say)
    served.make_room(options)
    served.adapt(role, adapters)
    return VllmEngine(served, adapters.digest, options.max_tokens)


@before_training
def sleep_servers() -> None:
    """Let all servers that may sleep give back their GPU memory, until they are asked again."""
    for served in list(_served.values()):
        served.sleep()


def _use(role: str, key: str) -> None:
    """Note which server a role uses, and end the servers that no role uses any more."""
    _server_of[role] = key
    for unused in _served.keys() - set(_server_of.values()):
        _served.pop(unused).close()


class VllmEngine:
    """Engine that samples from the model or the adapters that its role had when the engine was created."""

    batches_requests = True

    def __init__(self, served: ServedModel, adapters: str = "", max_tokens: int | None = None) -> None:
        """Bind the engine to a server; it becomes invalid when the server no longer holds what it samples from.

        Args:
            served: Server.
            adapters: Digest of the adapters to sample with; empty: the server's model as it is.
            max_tokens: Tokens of a stream; None: as many as the server takes.
        """
        self._served, self._adapters = served, adapters
        self.weights, self.max_tokens = adapters or served.model.digest, max_tokens or served.options.max_tokens

    def open(self, num_rows: int, capacity: int = 0) -> "VllmStreams":
        """Return empty streams; `capacity` is ignored because the server manages its memory."""
        return VllmStreams(self, num_rows)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each prompt.

        Raises:
            EngineError: the role has other weights now, the server refuses, or it failed too often.
        """
        if self.weights not in self._served.held:
            held = " and ".join(digest[:12] for digest in self._served.held)
            raise EngineError(f"vLLM samples from {held} now, not from {self.weights[:12]}")
        return self._served.complete(prompts, sampling, self._adapters)


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
