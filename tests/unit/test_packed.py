"""Rows without padding between them: each computes the same as alone, forwards and backwards."""

from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from models.network import packed, transformer, varlen
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


def gradients_through(network, hidden: torch.Tensor) -> torch.Tensor:
    """Return the gradients of a sum in which every token counts differently."""
    (hidden * torch.arange(1, len(hidden) + 1)[:, None]).sum().backward()
    return gradients(network)


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


def varlen_by_hand(query, key, value, query_edges, key_edges, longest_query, longest_key, **causal):
    """Do what the GPU's kernel does: row by row, the last query of each sees its last key."""
    assert longest_query == query_edges.diff().max()
    assert longest_key == key_edges.diff().max()
    found = []
    for (a, b), (c, d) in zip(query_edges.unfold(0, 2, 1), key_edges.unfold(0, 2, 1), strict=True):
        parts = [t.transpose(0, 1)[None] for t in (query[a:b], key[c:d], value[c:d])]
        visible = torch.ones(b - a, d - c, dtype=torch.bool).tril(int((d - c) - (b - a)))
        found.append(F.scaled_dot_product_attention(*parts, attn_mask=visible, enable_gqa=True)[0].transpose(0, 1))
    return torch.cat(found)


@given(groups=st.lists(GROUP, min_size=1, max_size=4), lonely=st.booleans())
def test_attention_without_padding_is_the_same(groups, lonely):
    network = tiny_network()
    weights = weights_of(network, torch.float32)
    prefixes, suffixes = [list(part) for part in zip(*groups, strict=True)]
    prefixes, suffixes = ([[1, *one] for one in prefixes], []) if lonely else (prefixes, suffixes)
    expected = forward_groups(weights, prefixes, suffixes)
    theirs = gradients_through(network, expected)
    with patch.object(packed, "can_attend", lambda _: True), patch.object(varlen, "_kernel", lambda: varlen_by_hand):
        found = forward_groups(weights, prefixes, suffixes)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_alike(gradients_through(network, found), theirs)


@given(groups=st.lists(GROUP, min_size=1, max_size=4))
def test_queries_that_attend_a_few_at_a_time_see_the_same(groups):
    network = tiny_network()
    weights = weights_of(network, torch.float32)
    prefixes, suffixes = [list(part) for part in zip(*groups, strict=True)]
    expected = forward_groups(weights, prefixes, suffixes)
    theirs = gradients_through(network, expected)
    with patch.object(transformer, "_QUERIES_AT_A_TIME", 7):
        found = forward_groups(weights, prefixes, suffixes)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_alike(gradients_through(network, found), theirs)


@given(groups=st.lists(GROUP, min_size=1, max_size=4), data=st.data())
def test_wanted_tokens_are_what_they_are_among_all(groups, data):
    network = tiny_network()
    weights = weights_of(network, torch.float32)
    prefixes, suffixes = [list(part) for part in zip(*groups, strict=True)]
    places = range(sum(map(len, prefixes)) + sum(len(one) for group in suffixes for one in group))
    wanted_M = torch.tensor(data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=40)))
    expected = forward_groups(weights, prefixes, suffixes)[wanted_M]
    theirs = gradients_through(network, expected)
    found = forward_groups(weights, prefixes, suffixes, wanted_M)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_alike(gradients_through(network, found), theirs)


def test_the_last_block_ends_with_the_wanted_tokens(monkeypatch):
    counted: list[int] = []
    finish = transformer.finish_block
    monkeypatch.setattr(
        packed, "_finish_block", lambda w, layer, x, seen: counted.append(len(x)) or finish(w, layer, x, seen)
    )
    found = forward(weights_of(tiny_network(), torch.float32), [[1] * 100] * 10, torch.tensor([99, 199]))
    assert (counted, len(found)) == ([1008, 16], 2)


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
