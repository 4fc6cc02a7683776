"""Rows without padding between them: each computes the same as alone, forwards and backwards."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.network.packed import forward, forward_groups
from models.network.transformer import logits_of, weights_of
from models.training.trained_logprobs import trained_logprobs
from schemas.records import Tokens
from tests.training import group_of
from tests.unit.tiny import tiny_network

TOKENS = st.lists(st.integers(1, 63), min_size=1, max_size=40)
GROUP = st.tuples(st.lists(st.integers(1, 63), max_size=20), st.lists(TOKENS, min_size=1, max_size=4))


def gradients(network) -> torch.Tensor:
    found = torch.cat([weight.grad.flatten() for weight in network.parameters()])
    network.zero_grad()
    return found


def assert_alike(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert (ours - theirs).norm() < 1e-5 * theirs.norm()


def alone(network, rows: list[list[int]]) -> torch.Tensor:
    """Return the logits of transformers' own forward pass, one row at a time."""
    return torch.cat([network(torch.tensor([row])).logits[0] for row in rows])


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@given(rows=st.lists(TOKENS, min_size=1, max_size=6))
def test_rows_are_what_they_are_alone(kind, rows):
    network = tiny_network(kind=kind)
    weights = weights_of(network, torch.float32)
    found = logits_of(weights, forward(weights, rows))[: sum(map(len, rows))]
    found.log_softmax(-1)[:, 7].mean().backward()
    ours = gradients(network)
    expected = alone(network, rows)
    expected.log_softmax(-1)[:, 7].mean().backward()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_alike(ours, gradients(network))


@given(groups=st.lists(GROUP, min_size=1, max_size=4))
def test_what_is_shared_is_computed_once_and_is_what_it_is_alone(groups):
    network = tiny_network()
    weights = weights_of(network, torch.float32)
    prefixes, suffixes = [list(part) for part in zip(*groups, strict=True)]
    hidden = forward_groups(weights, prefixes, suffixes)
    num_shared, count = sum(map(len, prefixes)), sum(len(s) for group in suffixes for s in group)
    found = logits_of(weights, hidden[num_shared : num_shared + count])
    found.log_softmax(-1)[:, 7].mean().backward()
    ours = gradients(network)
    wholes = [(len(p), alone(network, [[*p, *s]])) for p, group in groups for s in group]
    expected = torch.cat([logits[start:] for start, logits in wholes])
    expected.log_softmax(-1)[:, 7].mean().backward()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_alike(ours, gradients(network))


def test_nothing_is_computed_for_padding():
    network, counted = tiny_network(), []
    weights = weights_of(network, torch.float32)
    counted = [len(forward(weights, rows)) for rows in ([[1] * 500, *[[2] * 10] * 50], [[1] * 10] * 100)]
    assert counted == [1008, 1008], "1000 tokens of each, rounded up"


def streams(first: list[int], rest: list[list[tuple[int, bool]]]) -> list[Tokens]:
    made = []
    for tail in rest:
        ids, actions = [*first, *(token for token, _ in tail)], [False] * len(first) + [acted for _, acted in tail]
        made.append(Tokens(ids, actions, [0.0] * len(ids)))
    return made


TAIL = st.lists(st.tuples(st.integers(1, 63), st.booleans()), min_size=1, max_size=30).map(lambda t: [*t, (5, True)])


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(1, 63), min_size=1, max_size=9),
            st.lists(TAIL, min_size=1, max_size=3).flatmap(
                lambda t: st.lists(st.sampled_from(t), min_size=1, max_size=5)
            ),
        ),
        max_size=3,
        min_size=1,
    )
)
def test_actions_are_as_likely_as_in_a_forward_pass_of_their_stream_alone(parts):
    network, temperature = tiny_network(), 0.8
    groups = [group_of(streams(*part), [1.0] * len(part[1])) for part in parts]
    found = trained_logprobs(weights_of(network, torch.float32), groups, temperature)
    with torch.no_grad():
        expected = [
            logprobs[i - 1, token]
            for group in groups
            for one in (stream.tokens for stream in group.streams)
            for logprobs in [(alone(network, [one.ids]) / temperature).log_softmax(-1)]
            for i, (token, action) in enumerate(zip(one.ids, one.is_action, strict=True))
            if action
        ]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-5, rtol=1e-5)
