import math

import pytest
import torch

from models.generation.draws import by_running_sum
from models.generation.torch_engine import TorchEngine
from models.network.transformer import Weights, is_foreign, weights_of
from schemas.sampling import Sampling
from tests.distributions import likelihood_of_draws, nucleus_of
from tests.unit.tiny import tiny_network, true_logprobs


def exact(network) -> Weights:
    """Return the weights in float32, so that a test can be exact."""
    return weights_of(network, torch.float32)


@pytest.mark.parametrize("queries_at_a_time", [128, 5])
def test_sampled_logprobs_over_several_turns_are_those_of_a_full_forward(queries_at_a_time, monkeypatch):
    monkeypatch.setattr("models.network.transformer._QUERIES_AT_A_TIME", queries_at_a_time)
    network = tiny_network()
    sessions = TorchEngine(exact(network), 0).open(3)
    streams = [[5, 6, 7], [5, 6, 7], [9]]
    logprobs = [[], [], []]
    news = streams
    for _ in range(3):
        sessions.extend(range(3), news)
        sampled = sessions.generate(range(3), Sampling(max_new_tokens=6, end_ids=(0,)))
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
    sessions = TorchEngine(exact(tiny_network()), 0).open(8)
    sessions.extend(range(8), [[1, 2, 3, 4]] * 8)
    assert sessions.num_prefilled == 4


def test_a_restarted_row_forgets():
    network = tiny_network()
    sessions = TorchEngine(exact(network), 0).open(2)
    sessions.extend([0, 1], [[1, 2, 3], [4, 5]])
    sessions.generate([0, 1], Sampling(4, (0,)))
    sessions.restart(0)
    sessions.extend([0], [[9, 8, 7]])
    one = sessions.generate([0], Sampling(1, (0,)))[0]
    assert true_logprobs(network, [9, 8, 7])[-1, one.ids[0]].item() == pytest.approx(one.logprobs[0], abs=1e-5)


def test_greedy_is_the_likeliest_token():
    network = tiny_network()
    sessions = TorchEngine(exact(network), 0).open(1)
    sessions.extend([0], [[3, 4, 5]])
    one = sessions.generate([0], Sampling(1, (0,), temperature=0))[0]
    assert one.ids == [true_logprobs(network, [3, 4, 5])[-1].argmax().item()]


def test_tokens_are_drawn_as_often_as_they_are_likely():
    probabilities = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0])
    drawn = by_running_sum(probabilities.expand(100_000, -1), torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=6) / len(drawn)
    assert shares[probabilities == 0].sum() == 0
    assert torch.allclose(shares, probabilities, atol=5 * (0.25 / len(drawn)) ** 0.5)


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        ("qwen3", {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10_000.0}}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 0}),
        ("llama", {"mlp_bias": True}),
    ],
)
def test_a_network_that_the_lean_forward_would_get_wrong_is_left_to_transformers(kind, setting):
    assert is_foreign(tiny_network(kind=kind, **setting))
    assert not is_foreign(tiny_network(kind=kind))


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (1.4, 0.8), (1.0, 0.3)])
def test_what_is_sampled_is_distributed_as_the_network_says(temperature, top_p):
    network, count = tiny_network(vocab_size=16), 20_000
    likely = (true_logprobs(network, [3, 1, 4])[-1] / temperature).softmax(-1).tolist()
    nucleus = nucleus_of(likely, top_p)
    sessions = TorchEngine(exact(network), 0).open(count)
    sessions.extend(range(count), [[3, 1, 4]] * count)
    sampled = sessions.generate(range(count), Sampling(1, (0,), temperature, top_p))
    assert likelihood_of_draws([one.ids[0] for one in sampled], nucleus) > 0.001
    for one in sampled[:20]:
        assert one.logprobs[0] == pytest.approx(math.log(nucleus[one.ids[0]]), abs=1e-4)


def test_a_full_stream_is_not_sampled_and_one_that_gets_full_is_cut_there():
    prompts, sampling = [[3, 1, 4], [2] * 8, [5] * 10, [6] * 11], Sampling(6, (), temperature=0)
    engine = TorchEngine(exact(tiny_network()), 0, "w", max_tokens=10)
    limited, free = engine.open(4), TorchEngine(exact(tiny_network()), 0, "w").open(4)
    for streams in (limited, free):
        streams.extend(range(4), prompts)
    whole, cut, *full = limited.generate(range(4), sampling)
    first, second, *_ = free.generate(range(4), sampling)
    assert whole == first
    assert (cut.ids, cut.logprobs, cut.ended, cut.out_of_room) == (second.ids[:2], second.logprobs[:2], False, True)
    assert [(one.ids, one.ended, one.out_of_room) for one in full] == [([], False, True)] * 2
    assert [limited.length(row) for row in range(4)] == [9, 10, 10, 11]
    assert limited.num_sampled == 8


def test_an_answer_that_ends_with_its_stream_is_whole():
    free = TorchEngine(exact(tiny_network()), 0).open(1)
    free.extend([0], [[3, 1, 4]])
    (one,) = free.generate([0], Sampling(3, (), temperature=0))
    streams = TorchEngine(exact(tiny_network()), 0, max_tokens=6).open(1)
    streams.extend([0], [[3, 1, 4]])
    (same,) = streams.generate([0], Sampling(9, (one.ids[-1],), temperature=0))
    assert (same.ids, same.ended, same.out_of_room) == (one.ids, True, False)
