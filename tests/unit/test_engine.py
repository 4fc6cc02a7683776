import pytest
import torch

from models.engine import Sessions, _draw
from models.groups import ScoredGroup
from models.grpo import action_logprobs
from models.objective import GrpoOptions
from models.transformer import Weights, forward, logits_of, weights_of
from schemas.errors import InputError
from schemas.records import Tokens
from schemas.sampling import Sampling
from tests.unit.tiny import tiny_network


def exact(network) -> Weights:
    """In float32, so that a test can be exact."""
    return weights_of(network, torch.float32)


def true_logprobs(network, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return torch.log_softmax(network(torch.tensor([ids])).logits[0].float(), -1)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_the_lean_forward_is_the_networks_own(kind):
    network = tiny_network(kind=kind)
    ids = torch.randint(0, 64, (3, 17), generator=torch.Generator().manual_seed(1))
    weights = weights_of(network, torch.float32)
    with torch.no_grad():
        assert torch.allclose(logits_of(weights, forward(weights, ids)), network(ids).logits, atol=1e-5)


def test_sampled_logprobs_over_several_turns_are_those_of_a_full_forward():
    network = tiny_network()
    sessions = Sessions(exact(network), 3, torch.Generator().manual_seed(0))
    streams = [[5, 6, 7], [5, 6, 7], [9]]
    logprobs = [[], [], []]
    news = streams
    for _ in range(3):
        sessions.extend(range(3), news)
        sampled = sessions.generate(range(3), Sampling(max_new_tokens=6, end_id=0))
        for row, one in enumerate(sampled):
            before = len(streams[row])
            streams[row] = [*streams[row], *one.ids]
            table = true_logprobs(network, streams[row])
            for i, (token, logprob) in enumerate(zip(one.ids, one.logprobs, strict=True)):
                assert table[before + i - 1, token].item() == pytest.approx(logprob, abs=1e-5)
            logprobs[row] += one.logprobs
        news = [[11, 12], [13], [14, 15, 16]]
        streams = [[*stream, *new] for stream, new in zip(streams, news, strict=True)]


def test_rows_that_start_alike_are_computed_once():
    sessions = Sessions(exact(tiny_network()), 8, torch.Generator())
    sessions.extend(range(8), [[1, 2, 3, 4]] * 8)
    assert sessions.num_prefilled == 4


def test_a_restarted_row_forgets():
    network = tiny_network()
    sessions = Sessions(exact(network), 2, torch.Generator().manual_seed(0))
    sessions.extend([0, 1], [[1, 2, 3], [4, 5]])
    sessions.generate([0, 1], Sampling(4, 0))
    sessions.restart(0)
    sessions.extend([0], [[9, 8, 7]])
    one = sessions.generate([0], Sampling(1, 0))[0]
    assert true_logprobs(network, [9, 8, 7])[-1, one.ids[0]].item() == pytest.approx(one.logprobs[0], abs=1e-5)


def test_greedy_is_the_likeliest_token():
    network = tiny_network()
    sessions = Sessions(exact(network), 1, torch.Generator())
    sessions.extend([0], [[3, 4, 5]])
    one = sessions.generate([0], Sampling(1, 0, temperature=0))[0]
    assert one.ids == [true_logprobs(network, [3, 4, 5])[-1].argmax().item()]


def test_tokens_are_drawn_as_often_as_they_are_likely():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    drawn = _draw(probabilities.expand(100_000, -1), torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=6) / len(drawn)
    assert shares[probabilities == 0].sum() == 0
    assert torch.allclose(shares, probabilities, atol=5 * (0.25 / len(drawn)) ** 0.5)


def test_grouped_logprobs_are_those_of_single_forwards():
    network = tiny_network()
    first = ScoredGroup(
        [
            Tokens([1, 2, 3, 4, 5], [False, False, True, False, True], [0] * 5),
            Tokens([1, 2, 9], [False, False, True], [0] * 3),
        ],
        [1, -1],
    )
    second = ScoredGroup(
        [Tokens([7, 8, 6], [False, True, True], [0] * 3), Tokens([7, 9, 9, 2], [False, True, False, True], [0] * 4)],
        [1, -1],
    )
    found = action_logprobs(weights_of(network, torch.float32), [first, second], GrpoOptions().temperature)
    expected = [
        true_logprobs(network, one.ids)[i - 1, token]
        for group in (first, second)
        for one in group.tokens
        for i, (token, action) in enumerate(zip(one.ids, one.is_action, strict=True))
        if action
    ]
    assert torch.allclose(found, torch.stack(expected), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0}}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 0}),
        ("llama", {"mlp_bias": True}),
    ],
)
def test_a_network_that_the_lean_forward_would_get_wrong_is_refused(kind, setting):
    with pytest.raises(InputError, match="is not supported"):
        weights_of(tiny_network(kind=kind, **setting), torch.float32)
