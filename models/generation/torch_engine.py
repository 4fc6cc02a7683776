"""The torch engine: batched sampling with a key-value cache that lasts for a whole episode.

    sessions.extend   adds tokens from outside (task, state) to the cache, ragged; equal starts are computed once
    sessions.generate samples tokens; finished rows leave the batch, so that no row waits for the longest

Sampled tokens enter the cache with the next extend, in one pass together with the next state.

Shapes: R rows, T new tokens, S cached tokens, K key-value heads, D head size, E hidden size, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from models.generation.cache import Cache, advance, rounded
from models.generation.decoding import Decoder, StepwiseDecoder
from models.generation.foreign_sessions import ForeignSessions, rows_of
from models.generation.graphs import GraphDecoder
from models.network.foreign.weights import ForeignWeights
from models.network.precision import matmul_dtype
from models.network.transformer import Weights, weights_of
from schemas.ports import TokenStreams
from schemas.sampling import Sampled, Sampling

_TOKENS_AT_ONCE = 2_048
"""Maximum number of tokens per prefill pass on a CPU; larger passes overflow its caches and take twice as long."""


def engine_weights(network: Any) -> Weights | ForeignWeights:
    """Return a network's weights for generation, in the precision that is fastest on its device for 32 rows or more."""
    return weights_of(network, matmul_dtype(network.device), for_sampling=True)


class TorchEngine:
    """Engine in this process; see `schemas.ports.Engine`."""

    batches_requests = False

    def __init__(
        self, weights: Weights | ForeignWeights, seed: int, version: str = "", max_tokens: int | None = None
    ) -> None:
        """Create an engine that samples the same tokens for the same seed and the same sequence of requests.

        Args:
            weights: Weights to sample from.
            seed: Seed of the sampling.
            version: Version of the weights, stamped on everything that is sampled.
            max_tokens: Tokens of a stream, beyond which nothing is sampled; None: no limit.
        """
        generator = torch.Generator(weights.device).manual_seed(seed)
        if isinstance(weights, ForeignWeights):
            begin = rows_of(weights)
            self._open = lambda num_rows, _: ForeignSessions(begin, num_rows, generator, version, max_tokens)
        else:
            decoder = (GraphDecoder if weights.device.type == "cuda" else StepwiseDecoder)(weights, generator)
            self._open = lambda num_rows, capacity: Sessions(weights, num_rows, decoder, capacity, version, max_tokens)

    def open(self, num_rows: int, capacity: int = 256) -> TokenStreams:
        """Open empty streams; all streams of the engine draw from one source of randomness."""
        return self._open(num_rows, capacity)


class Sessions:
    """Token streams, one per row, each with its own length."""

    def __init__(
        self,
        weights: Weights,
        num_rows: int,
        decoder: Decoder,
        capacity: int = 256,
        version: str = "",
        max_tokens: int | None = None,
    ) -> None:
        """Create empty streams.

        Args:
            weights: Weights of the network that continues the streams.
            num_rows: Number of streams.
            decoder: Sampler of continuations for the same network.
            capacity: Initial room per row in tokens; it grows as needed.
            version: Version of the weights.
            max_tokens: Tokens of a stream; None: no limit.
        """
        self._weights, self._version, self._max_tokens = weights, version, max_tokens
        self._decoder = decoder
        self._cache = Cache.empty(weights, num_rows, capacity)
        self._next_hidden = torch.zeros(num_rows, weights.embedding.shape[1], device=weights.device)
        self._pending: list[list[int]] = [[] for _ in range(num_rows)]
        self.num_prefilled = 0
        self.num_sampled = 0

    def restart(self, row: int) -> None:
        """Clear a row's stream, so that the row can be reused."""
        self._cache.lengths_R[row] = 0
        self._pending[row] = []

    def length(self, row: int) -> int:
        """Return the number of tokens in a row's stream."""
        return int(self._cache.lengths_R[row]) + len(self._pending[row])

    @torch.inference_mode()
    def extend(self, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        """Append tokens to rows; empty rows that get the same tokens are computed once and copied."""
        streams = {row: [*self._pending[row], *new] for row, new in zip(rows, ids, strict=True)}
        first_with: dict[tuple[int, ...], int] = {}
        copies: dict[int, int] = {}
        for row, stream in streams.items():
            twin = first_with.setdefault(tuple(stream), row) if self._cache.lengths_R[row] == 0 else row
            if twin != row:
                copies[row] = twin
        for portion in self._portions({row: stream for row, stream in streams.items() if row not in copies}):
            self._prefill(portion)
        self._copy_rows(copies)
        for row in rows:
            self._pending[row] = []

    def _portions(self, streams: dict[int, list[int]]) -> Iterator[dict[int, list[int]]]:
        """Split streams into prefill passes: on a CPU a few rows of similar length, elsewhere all at once."""
        if self._weights.device.type != "cpu":
            yield streams
            return
        portion: dict[int, list[int]] = {}
        for row in sorted(streams, key=lambda row: len(streams[row])):
            if portion and rounded(len(streams[row])) * (len(portion) + 1) > _TOKENS_AT_ONCE:
                yield portion
                portion = {}
            portion[row] = streams[row]
        yield portion

    def _prefill(self, streams: dict[int, list[int]]) -> None:
        rows_R = torch.tensor(list(streams))
        counts_R = torch.tensor([len(stream) for stream in streams.values()])
        length = rounded(int(counts_R.max()))
        ids_RT = torch.tensor([stream + [0] * (length - len(stream)) for stream in streams.values()])
        self._next_hidden[rows_R] = advance(self._weights, self._cache, ids_RT, rows_R, counts_R).float()
        self._cache.lengths_R[rows_R] += counts_R
        self.num_prefilled += int(counts_R.sum())

    def _copy_rows(self, copies: dict[int, int]) -> None:
        if not copies:
            return
        to, source = torch.tensor(list(copies)), torch.tensor(list(copies.values()))
        span = int(self._cache.lengths_R[source].max())
        for tensor in (*self._cache.keys, *self._cache.values):
            tensor[to, :, :span] = tensor[source, :, :span]
        self._next_hidden[to] = self._next_hidden[source]
        self._cache.lengths_R[to] = self._cache.lengths_R[source]

    @torch.inference_mode()
    def generate(self, rows: Sequence[int], sampling: Sampling) -> list[Sampled]:
        """Sample a continuation of each row, up to the end token, the token limit, or the end of its stream."""
        rooms = {row: sampling.room(self.length(row), self._max_tokens) for row in rows}
        sampled = self._sampled([row for row in rows if rooms[row] > 0], sampling)
        answers = [sampled[row].within(rooms[row]) if row in sampled else self._full() for row in rows]
        for row, one in zip(rows, answers, strict=True):
            self._pending[row] = one.ids
            self.num_sampled += len(one.ids)
        return answers

    def _full(self) -> Sampled:
        return Sampled([], [], False, self._version, out_of_room=True)

    def _sampled(self, rows: list[int], sampling: Sampling) -> dict[int, Sampled]:
        if not rows:
            return {}
        rows_R = torch.tensor(rows)
        found = self._decoder.decode(self._cache, rows_R, self._next_hidden[rows_R], sampling)
        return {
            row: Sampled(ids, logprobs, ids[-1] in sampling.end_ids, self._version)
            for row, ids, logprobs in zip(rows, found.ids, found.logprobs, strict=True)
        }
