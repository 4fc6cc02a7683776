"""Decoding by steps that stay in place samples what decoding token by token does. Here the steps are not captured."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.generation.decoding import StepwiseDecoder
from models.generation.graphs import GraphDecoder, rows_for, span_for
from models.generation.torch_engine import Sessions
from models.network.transformer import weights_of
from schemas.sampling import Sampling
from tests.unit.tiny import tiny_network, true_logprobs

PROMPTS = st.lists(st.lists(st.integers(1, 63), min_size=1, max_size=70), min_size=1, max_size=20)


def sessions_of(network, decoder_class, num_rows: int) -> Sessions:
    weights = weights_of(network, torch.float32, for_sampling=True)
    return Sessions(weights, num_rows, decoder_class(weights, torch.Generator().manual_seed(0)))


@given(
    turns=st.lists(PROMPTS, min_size=1, max_size=3),
    end_ids=st.sampled_from([(), (5,), (5, 17)]),
    limit=st.integers(1, 20),
)
def test_greedy_tokens_are_those_of_decoding_token_by_token(turns, end_ids, limit):
    network, sampling = tiny_network(), Sampling(limit, end_ids, temperature=0)
    ours, theirs = (sessions_of(network, kind, 20) for kind in (GraphDecoder, StepwiseDecoder))
    for prompts in turns:
        rows = range(len(prompts))
        for one in (ours, theirs):
            one.extend(rows, prompts)
        assert ours.generate(rows, sampling) == theirs.generate(rows, sampling)


def test_rows_that_have_ended_make_room_and_the_others_go_on_as_likely_as_they_are():
    network = tiny_network()
    sessions = sessions_of(network, GraphDecoder, 40)
    prompts = [[3, row + 1] for row in range(40)]
    sessions.extend(range(40), prompts)
    sampled = sessions.generate(range(40), Sampling(60, (7,)))
    assert len({len(one.ids) for one in sampled}) > 10, "rows end at different times"
    for prompt, one in zip(prompts, sampled, strict=True):
        table = true_logprobs(network, [*prompt, *one.ids])[len(prompt) - 1 :]
        expected = [table[place, token].item() for place, token in enumerate(one.ids)]
        assert one.logprobs == pytest.approx(expected, abs=1e-4)


@given(st.integers(1, 5_000))
def test_sizes_are_few_and_never_too_small(number):
    assert number <= rows_for(number) < 2 * number + 8
    assert number <= span_for(number) < number * 1.15 + 64
    assert len({span_for(one) for one in range(1, number + 1)}) <= 8 * number.bit_length()
