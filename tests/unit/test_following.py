"""Streams that move on to newer weights between two turns."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flows.loop.train_in_the_dream import is_calibrated_after, last_to_begin
from models.generation.torch_engine import TorchEngine
from models.generation.weight_following_engine import LiveWeightsEngine
from models.network.transformer import weights_of
from schemas.recipes.learning import DreamRecipe
from schemas.sampling import Sampling
from tests.unit.tiny import tiny_network

NETWORKS = {version: tiny_network(seed=seed) for seed, version in enumerate(("old", "new", "newest"))}
ENGINES = {
    version: TorchEngine(weights_of(network, torch.float32), 0, version) for version, network in NETWORKS.items()
}


def true_logprobs(version: str, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return torch.log_softmax(NETWORKS[version](torch.tensor([ids])).logits[0].float(), -1)


def test_each_turn_has_the_version_and_the_logprobs_of_the_weights_that_sampled_it():
    now = "old"
    streams = LiveWeightsEngine(lambda: ENGINES[now]).open(3)
    whole: list[list[int]] = [[], [], []]
    for now, rows in (("old", [0, 1, 2]), ("new", [0, 2]), ("new", [0, 1]), ("newest", [1, 2]), ("newest", [0, 1, 2])):
        seen = [[7 + row, 8] for row in rows]
        streams.extend(rows, seen)
        for row, new, one in zip(rows, seen, streams.generate(rows, Sampling(5, (0,))), strict=True):
            whole[row] += new
            before = len(whole[row])
            whole[row] += one.ids
            table = true_logprobs(now, whole[row])
            expected = [table[before + i - 1, token].item() for i, token in enumerate(one.ids)]
            assert one.weight_version == now
            assert one.logprobs == pytest.approx(expected, abs=1e-5)
    assert [streams.length(row) for row in range(3)] == list(map(len, whole))


def test_a_row_that_began_anew_is_not_reminded_of_what_it_was():
    now = "old"
    streams = LiveWeightsEngine(lambda: ENGINES[now]).open(2)
    streams.extend([0, 1], [[5, 6], [9]])
    streams.generate([0, 1], Sampling(4, (0,)))
    now = "new"
    streams.extend([1], [[3]])
    streams.restart(0)
    streams.extend([0], [[4, 4, 4]])
    (one,) = streams.generate([0], Sampling(1, (0,), temperature=0))
    assert one.ids == [true_logprobs("new", [4, 4, 4])[-1].argmax().item()]
    assert streams.length(0) == 4


def test_counts_go_on_over_a_change_of_weights():
    now = "old"
    streams = LiveWeightsEngine(lambda: ENGINES[now]).open(1)
    streams.extend([0], [[5, 6, 7]])
    (first,) = streams.generate([0], Sampling(2, (0,)))
    now = "new"
    streams.extend([0], [[8]])
    assert streams.num_sampled == len(first.ids)
    assert streams.num_prefilled == 3 + 3 + len(first.ids) + 1


@given(st.integers(0, 5), st.integers(1, 6), st.integers(1, 20))
def test_dreams_are_no_staler_than_allowed_and_never_cross_a_calibration(max_staleness, calibrate_every, num_rounds):
    asked = DreamRecipe(max_staleness=max_staleness, calibrate_every=calibrate_every, num_rounds=num_rounds)
    for round in range(num_rounds):
        last = last_to_begin(asked, round)
        assert round <= last <= min(round + max_staleness, num_rounds - 1)
        assert not any(is_calibrated_after(asked, one) for one in range(round, last))
        further = last + 1
        assert further > min(round + max_staleness, num_rounds - 1) or is_calibrated_after(asked, last)
