"""Decoding by CUDA graphs: a step is launched as a whole, and the host looks at tokens only now and then.

A step of a small batch is some thousand short kernels, and launching them one by one takes longer than they do. A graph
holds for one number of rows, one span and one way of drawing, with its tensors in place, so sizes are rounded up to a few.

Shapes: R rows, K key-value heads, S positions, D head size, E hidden size, N steps between two looks.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from models.generation.cache import Cache, pass_through
from models.generation.decoding import Continuations
from models.generation.draws import draw
from models.network.transformer import Weights, logits_of
from schemas.sampling import Sampling

_STEPS_UNTIL_LOOK = 8
"""Number of tokens sampled before the host looks which rows have ended."""
_FEWEST_ROWS, _SHORTEST_SPAN = 8, 64


class GraphDecoder:
    """Decoder that runs captured steps; see `Decoder`. Where there is no GPU, it runs the same steps uncaptured."""

    def __init__(self, weights: Weights, generator: torch.Generator) -> None:
        """Create a decoder whose draws come from one source of randomness."""
        self._weights, self._generator = weights, generator
        self._memory = torch.empty(0, dtype=weights.dtype, device=weights.device)
        self._steps: dict[tuple[int, int, Sampling], _Step] = {}
        self._pool = self._new_pool()

    def _new_pool(self) -> Any:
        """Return memory for what graphs compute in between; None where there are none."""
        return torch.cuda.graph_pool_handle() if self._weights.device.type == "cuda" else None

    @torch.inference_mode()
    def decode(self, cache: Cache, rows_R: Tensor, hidden_RE: Tensor, sampling: Sampling) -> Continuations:
        """Sample continuations; see `Decoder.decode`."""
        found = Continuations(len(rows_R), sampling.end_ids)
        ids_R, logprobs_R = draw(logits_of(self._weights, hidden_RE), sampling, self._generator)
        found.append(ids_R.tolist(), logprobs_R.tolist())
        lengths_R = cache.lengths_R[rows_R]
        span = span_for(int(lengths_R.max()) + sampling.max_new_tokens)
        step = self._step(len(rows_R), span, sampling)
        step.fill(cache.keys, cache.values, rows_R, lengths_R, ids_R)
        num_left = sampling.max_new_tokens - 1
        while found.num_open and num_left:
            if rows_for(found.num_open) < step.num_rows:
                step = self._compacted(step, torch.tensor(found.drop_ended()), span, sampling)
            num_steps = min(_STEPS_UNTIL_LOOK, num_left)
            for ids, logprobs in step.run(num_steps):
                found.append(ids[: found.batch_size], logprobs[: found.batch_size])
            num_left -= num_steps
        return found

    def _compacted(self, step: "_Step", rows_R: Tensor, span: int, sampling: Sampling) -> "_Step":
        """Move some rows of a step to one of fewer rows, which lies in the same memory."""
        on_device = rows_R.to(self._weights.device)
        keys, values = ([layer[on_device] for layer in layers] for layers in (step.keys, step.values))
        lengths_R, ids_R = step.lengths_R[on_device], step.ids_R[on_device]
        smaller = self._step(len(rows_R), span, sampling)
        smaller.fill(keys, values, torch.arange(len(rows_R)), lengths_R, ids_R)
        return smaller

    def _step(self, num_rows: int, span: int, sampling: Sampling) -> "_Step":
        """Return a step for at least this many rows, captured at its first use."""
        weights, num_rows = self._weights, rows_for(num_rows)
        drawn = replace(sampling, max_new_tokens=0, end_ids=())
        shape = (2, len(weights.blocks), num_rows, weights.num_kv_heads, span, weights.head_size)
        size = torch.Size(shape).numel()
        if size > len(self._memory):
            self._steps.clear()  # and with them their pool
            self._memory, self._pool = self._memory.new_zeros(size), self._new_pool()
        if (key := (num_rows, span, drawn)) not in self._steps:
            keys, values = self._memory[:size].view(shape)
            self._steps[key] = _Step(weights, list(keys), list(values), drawn, self._generator, self._pool)
        return self._steps[key]


def rows_for(num_rows: int) -> int:
    """Round a number of rows up to a power of two."""
    return max(_FEWEST_ROWS, 1 << (num_rows - 1).bit_length())


def span_for(length: int) -> int:
    """Round a length up to one of eight per doubling."""
    step = max(_SHORTEST_SPAN, 1 << max(0, (length - 1).bit_length() - 4))
    return -(-length // step) * step


class _Step:
    """One decoding step of a number of rows, whose tensors stay in place."""

    def __init__(
        self,
        weights: Weights,
        keys: list[Tensor],
        values: list[Tensor],
        sampling: Sampling,
        generator: torch.Generator,
        pool: Any,
    ) -> None:
        """Capture a step that reads and extends these keys and values, [R, K, S, D] each.

        Args:
            weights: Weights of the network.
            keys: Keys of each layer.
            values: Values of each layer.
            sampling: Temperature and nucleus.
            generator: Source of randomness.
            pool: Memory that graphs share for what they compute in between; None: the step is not captured.
        """
        self.keys, self.values = keys, values
        self.num_rows, _, self._span, _ = keys[0].shape
        self._weights, self._sampling, self._generator = weights, sampling, generator
        self.lengths_R, self.ids_R = torch.zeros(2, self.num_rows, dtype=torch.long, device=weights.device)
        self._place = torch.zeros(1, dtype=torch.long, device=weights.device)
        self._ids_NR = torch.zeros(_STEPS_UNTIL_LOOK, self.num_rows, dtype=torch.long, device=weights.device)
        self._logprobs_NR = torch.zeros(_STEPS_UNTIL_LOOK, self.num_rows, device=weights.device)
        self._launch = _captured(self._compute, generator, pool) if pool else self._compute

    def fill(self, keys: list[Tensor], values: list[Tensor], rows_R: Tensor, lengths_R: Tensor, ids_R: Tensor) -> None:
        """Take rows of other keys and values, up to their filled length, and the token that each row goes on with."""
        count, span = len(rows_R), min(int(lengths_R.max()), keys[0].shape[2])
        for own, other in zip((*self.keys, *self.values), (*keys, *values), strict=True):
            own[:count, :, :span] = other[rows_R.to(other.device), :, :span].to(own.dtype)
        self.lengths_R.zero_()
        self.lengths_R[:count] = lengths_R.to(self.lengths_R.device)
        self.ids_R[:count] = ids_R

    def run(self, num_steps: int) -> Iterator[tuple[list[int], list[float]]]:
        """Sample tokens of all rows; yield the ids and log-probabilities of each step."""
        self._place.zero_()
        for _ in range(num_steps):
            self._launch()
        yield from zip(self._ids_NR[:num_steps].tolist(), self._logprobs_NR[:num_steps].tolist(), strict=True)

    def _compute(self) -> None:
        ids_R1, positions_R1 = self.ids_R[:, None], self.lengths_R[:, None]
        hidden_RE = pass_through(self._weights, self.keys, self.values, ids_R1, positions_R1, self._span)
        ids_R, logprobs_R = draw(logits_of(self._weights, hidden_RE), self._sampling, self._generator)
        self._ids_NR.index_copy_(0, self._place, ids_R[None])
        self._logprobs_NR.index_copy_(0, self._place, logprobs_R[None])
        self.ids_R.copy_(ids_R)
        self.lengths_R += 1
        self._place += 1


def _captured(compute: Callable[[], None], generator: torch.Generator, pool: Any) -> Callable[[], None]:
    """Return a function that replays what a computation launched, with new random numbers each time."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        compute()  # the first call compiles and initialises libraries, which cannot be captured
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph, pool=pool):
        compute()
    return graph.replay
