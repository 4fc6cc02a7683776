import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.methods.advantages.grpo import group_advantages
from models.methods.importance import ImportanceOptions, importance_weights
from models.methods.losses import open_loss
from models.methods.ratios import k3, ratios
from models.methods.streams import TrainingGroup, micro_batches
from models.network.packed import forward_groups
from models.network.trained_parameters import trainable_copy
from models.network.transformer import weights_of
from models.training.trained_logprobs import trained_logprobs
from models.training.trained_tokens import TrainedTokens
from schemas.recipes.methods import LossRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.records import AgentTask, Failure, Step, Tokens, Trajectory, Turn
from tests.training import batch_of, clipped, group_of, rl, scoring, trainer_of
from tests.unit.tiny import tiny_network

TASK = AgentTask("t", "do it", "train", "f")


def episode(reward: float, failure: Failure | None = None, group: str = "g") -> Trajectory:
    turn = Turn("- a: b", "act", Step("- a: c", reward, done=True, success=reward > 0))
    tokens = Tokens([1, 2, 3], [False, True, True], [0.0, -1.0, -1.0])
    return Trajectory(TASK, "dream", [turn], (tokens,), failure, group_id=group)


def advantages_of(group: TrainingGroup) -> list[float]:
    return [one for stream in group.streams for one in stream.advantages]


def test_advantages_by_hand():
    # rewards 1 0 0 0: mean 1/4, sample std 1/2
    assert group_advantages([1, 0, 0, 0]) == pytest.approx([0.75 / 0.5001, *[-0.25 / 0.5001] * 3])


def test_leave_one_out_by_hand():
    # the winner against the mean of the others: 1 - 0; a loser: 0 - 1/3
    assert group_advantages([1, 0, 0, 0], normalise_std=False, leave_one_out=True) == pytest.approx(
        [1, -1 / 3, -1 / 3, -1 / 3]
    )


def test_a_lone_episode_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        group_advantages([1.0])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=16))
def test_advantages_sum_to_zero(rewards):
    assert sum(group_advantages(rewards)) == pytest.approx(0, abs=1e-6)


def test_objective_by_hand():
    # ratio e^0.5 = 1.6487 clipped to 1.28 with advantage 2: -2.56; ratio e^-0.5 = 0.6065 with -1: max(0.6065, 0.8) = 0.8
    logprobs, old = torch.tensor([-1.0, -1.5]), torch.tensor([-1.5, -1.0])
    loss, sums = clipped(batch_of(logprobs, old, torch.tensor([2.0, -1.0])))
    assert loss.item() == pytest.approx(-2.56 + 0.8)
    assert sums["clipped"] == 2


def test_kl_is_k3_by_hand():
    # reference - current = ln 2: k3 = 2 - ln 2 - 1
    logprobs, reference = torch.tensor([-math.log(4)]), torch.tensor([-math.log(2)])
    loss, sums = clipped(batch_of(logprobs, logprobs, torch.tensor([0.0]), reference), kl_coefficient=0.5)
    assert sums["kl"] == pytest.approx(1 - math.log(2), abs=1e-6)
    assert loss.item() == pytest.approx(0.5 * (1 - math.log(2)), abs=1e-6)


@pytest.mark.parametrize("name", ["clipped", "gspo", "cispo"])
@pytest.mark.parametrize("gap", [-2000.0, 2000.0])
def test_a_ratio_that_overflows_leaves_loss_and_gradient_finite(name, gap):
    logprobs = torch.tensor([-1.0, -1.5], requires_grad=True)
    batch = batch_of(logprobs, logprobs.detach() - gap, torch.tensor([2.0, -1.0]), logprobs.detach() + gap)
    loss, sums = open_loss(LossRecipe(name=name, importance_correction="token")).rl(batch)
    loss.backward()
    assert all(map(math.isfinite, [loss.item(), *logprobs.grad.tolist(), *sums.values()]))


def test_ratios_are_exact_where_policies_are_alike():
    gaps = torch.linspace(-30, 19, 99)
    assert torch.equal(ratios(gaps), gaps.exp())
    assert torch.equal(k3(torch.zeros(99), gaps), gaps.exp() - gaps - 1)


def correction(kind: str, **options) -> ImportanceOptions:
    return ImportanceOptions(importance_correction=kind, **options)


OLD, SAMPLED = torch.tensor([-1.0, -2.0, -1.0]), torch.tensor([-1.0 - math.log(3), -2.0 + math.log(2), -1.0])
"""Log-probabilities of tokens that the old policy finds 3, 1/2 and 1 times as likely as their sampler did."""


def test_importance_of_tokens_by_hand():
    weights, sums = importance_weights(OLD, SAMPLED, [2, 1], correction("token", max_importance_ratio=2.5))
    assert weights.tolist() == pytest.approx([2.5, 0.5, 1.0])
    assert sums["sampler_ratio"] == pytest.approx(4.5)
    assert sums["sampler_kl"] == pytest.approx((3 - 1 - math.log(3)) + (0.5 - 1 + math.log(2)), abs=1e-6)
    assert sums["sampler_capped"] == 1


def test_importance_of_a_sequence_is_the_product_over_its_tokens():
    weights, sums = importance_weights(OLD, SAMPLED, [2, 1], correction("sequence", max_importance_ratio=1.4))
    assert weights.tolist() == pytest.approx([1.4, 1.4, 1.0])
    assert sums["sampler_ratio"] == pytest.approx(4.5)
    assert sums["sampler_capped"] == 2


def test_mismatch_is_measured_though_nothing_is_corrected():
    weights, sums = importance_weights(OLD, SAMPLED, [2, 1], ImportanceOptions())
    assert weights.tolist() == [1, 1, 1]
    assert sums["sampler_ratio"] == pytest.approx(4.5)
    assert sums["sampler_capped"] == 0


@pytest.mark.parametrize("kind", ["token", "sequence"])
def test_what_the_trainers_own_policy_sampled_is_trained_on_alike_with_and_without_correction(kind):
    def as_sampled_by_itself(group: TrainingGroup) -> TrainingGroup:
        logprobs = iter(trained_logprobs(weights_of(tiny_network(seed=3), torch.float32), [group], 0.7).tolist())
        sampled = [
            replace(t.tokens, logprobs=[next(logprobs) if a else 0.0 for a in t.tokens.is_action])
            for t in group.streams
        ]
        return group_of(sampled, group.returns)

    groups = [as_sampled_by_itself(group) for group in random_groups(4)]
    after, measured = [], {}
    for kind_or_none in ("none", kind):
        options = rl(loss={"importance_correction": kind_or_none}, learning_rate=1.0, temperature=0.7)
        network = tiny_network(seed=3)
        trainer = trainer_of(network, tiny_network(seed=4), options)
        trainer.optimizer = torch.optim.SGD(network.parameters())  # weights move by the gradients
        measured = trainer.train(groups)
        after.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert measured["sampler_kl"] < 1e-3
    assert torch.allclose(*after, atol=1e-5)


def test_groups_that_teach_nothing_are_counted_and_left_out():
    groups = [
        [episode(1, group="a"), episode(1, group="a")],
        [episode(0, group="b"), episode(0, group="b")],
        [episode(1, group="c"), episode(0, Failure.UNPARSABLE, "c")],
        [episode(1, group="d"), episode(0, group="d")],
        [episode(math.nan, group="e"), episode(0, group="e")],
    ]
    scored, counts = scoring().informative_groups([one for group in groups for one in group])
    assert len(scored) == 1
    assert counts == {"broken": 2, "all_succeeded": 1, "all_failed": 1}


def test_a_group_that_is_not_whole_never_trains():
    failed = episode(0, Failure.UNPARSABLE)
    scored, counts = scoring().informative_groups([episode(1), failed, episode(0), episode(0)])
    assert not scored
    assert counts == {"broken": 1, "all_succeeded": 0, "all_failed": 0}


def test_truncated_episodes_can_be_left_out_of_the_loss_but_not_of_the_mean():
    cut_off = replace(episode(0), truncated=True)
    scored, _ = scoring(mask_truncated=True).informative_groups([episode(1), episode(0), cut_off])
    # rewards 1 0 0: mean 1/3, sample std sqrt(1/3)
    assert advantages_of(scored[0]) == pytest.approx([2 / 3 / 0.57745, -1 / 3 / 0.57745], rel=1e-3)
    assert len(scored[0].streams) == 2


def test_a_group_whose_episodes_are_all_masked_is_left_out_whatever_it_was_granted():
    # shaped returns: no episode succeeded or ended, and they differ all the same
    cut_off = [replace(episode(reward), truncated=True) for reward in (0.2, 0.7)]
    assert scoring(mask_truncated=True).informative_groups(cut_off) == (
        [],
        {"broken": 0, "all_succeeded": 0, "all_failed": 0, "all_masked": 1},
    )
    (scored,), _ = scoring().informative_groups(cut_off)
    better, worse = reversed(advantages_of(scored))
    assert better > 0 > worse


def test_returns_that_differ_in_their_last_bits_are_equal_and_partial_ones_are_no_success():
    def partly(*rewards: float) -> Trajectory:
        steps = [Step("- a: c", one, done=i == len(rewards) - 1, success=False) for i, one in enumerate(rewards)]
        return replace(episode(0), turns=[Turn("- a: b", "act", step) for step in steps])

    group = [partly(0.1, 0.2, 0.3), partly(0.3, 0.2, 0.1)]  # 0.6000000000000001 and 0.6
    scored, counts = scoring().informative_groups(group)
    assert not scored
    assert counts == {"broken": 0, "all_succeeded": 0, "all_failed": 1}


def test_negative_advantages_can_weigh_less_by_hand():
    # rewards 1 0 0 0 without the deviation: 3/4 and -1/4, the latter halved
    advantage = scoring(normalise_std=False, negative_scale=0.5)
    scored, _ = advantage.informative_groups([episode(r) for r in (1, 0, 0, 0)])
    assert advantages_of(scored[0]) == pytest.approx([0.75, -0.125, -0.125, -0.125])


def test_the_learning_rate_warms_up_over_updates_and_not_over_rounds():
    trainer = trainer_of(tiny_network(seed=1), None, rl(learning_rate=0.4, warmup_updates=4, updates_per_round=1))
    rates = []
    for _ in range(6):
        trainer.train(random_groups(1))
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.4, 0.4])


def random_groups(num_groups: int) -> list[TrainingGroup]:
    generator = torch.Generator().manual_seed(0)

    def tokens() -> Tokens:
        length = 4 + int(torch.randint(0, 5, (1,), generator=generator))
        ids = [7, 8, *torch.randint(1, 60, (length,), generator=generator).tolist()]
        mask = [False, False, True, *[bool(i % 3) for i in range(length - 1)]]
        return Tokens(ids, mask, [0.0] * len(ids))

    return [group_of([tokens() for _ in range(4)], group_advantages([1, 0, 0, 1])) for _ in range(num_groups)]


def test_the_update_does_not_depend_on_how_micro_batches_are_cut():
    groups = random_groups(6)
    after = []
    for tokens_per_batch in (1, 40, 10_000):
        network = tiny_network(seed=3)
        trainer_of(network, None, rl(updates_per_round=1), tokens_per_batch).train(groups)
        after.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert len(list(micro_batches(groups, 1))) == 6
    assert torch.allclose(after[0], after[2], atol=1e-6)
    assert torch.allclose(after[1], after[2], atol=1e-6)


def test_streams_that_are_alike_are_computed_once_and_count_each(monkeypatch):
    (group,) = random_groups(1)
    one, other = (stream.tokens for stream in group.streams[:2])
    streams, advantages = [one, other, one, one], [0.5, -1.0, 2.0, -0.25]
    alike = group_of(streams, advantages)
    computed = []
    monkeypatch.setattr(
        "models.training.trained_logprobs.forward_groups",
        lambda w, p, s, m: computed.append(s) or forward_groups(w, p, s, m),
    )
    after = []
    for groups in ([alike], [group_of([t], [a]) for t, a in zip(streams, advantages, strict=True)]):
        network, options = (
            tiny_network(seed=3),
            rl(loss={"kl_coefficient": 0.01}, learning_rate=1.0, updates_per_round=1),
        )
        trainer = trainer_of(network, tiny_network(seed=4), options)
        trainer.optimizer = torch.optim.SGD(network.parameters())  # weights move by the gradients
        trainer.train(groups)
        after.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert torch.allclose(*after, atol=1e-6)
    assert [len(suffixes) for suffixes in computed[0]] == [2]


@pytest.mark.parametrize("rank", [0, 4])
def test_training_makes_the_rewarded_action_likelier(rank):
    network = trainable_copy(tiny_network(seed=1), TrainingRecipe(lora_rank=rank, lora_alpha=16), seed=0)
    good, bad = Tokens([1, 2, 10], [False, False, True], [0] * 3), Tokens([1, 2, 20], [False, False, True], [0] * 3)
    group = group_of([good, bad], group_advantages([1, 0]))
    trainer = trainer_of(network, None, rl(learning_rate=1e-2))
    for _ in range(5):
        trainer.train([group])
    with torch.no_grad():
        logprobs = torch.log_softmax(network(torch.tensor([[1, 2]])).logits[0, -1], -1)
    assert logprobs[10] > logprobs[20] + 1


@pytest.mark.parametrize("num_passes", [1, 3])
def test_every_update_of_a_round_is_held_against_the_policy_that_the_round_began_with(num_passes):
    groups, options = random_groups(2), rl(learning_rate=1e-2, updates_per_round=2, passes_per_round=num_passes)
    trained, expected = tiny_network(seed=3), tiny_network(seed=3)
    trainer_of(trained, None, options).train(groups)
    optimizer = torch.optim.AdamW(expected.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.0)

    def logprobs(group: TrainingGroup) -> torch.Tensor:
        return trained_logprobs(weights_of(expected, torch.float32), [group], options.temperature)

    before = [logprobs(group).detach() for group in groups]
    for group, old in [*zip(groups, before, strict=True)] * num_passes:
        computed = logprobs(group)
        batch = TrainedTokens([group], computed.device).batch(computed, old, None, computed, None)
        loss, _ = open_loss(options.loss).rl(batch)
        (loss / group.num_actions).backward()
        torch.nn.utils.clip_grad_norm_(expected.parameters(), options.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
    for ours, theirs in zip(trained.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
