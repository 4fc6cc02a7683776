"""PPO: generalised advantages, clipped value loss and a critic that learns, by hand and against other formulations."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch.distributions import Categorical
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value.functional import generalized_advantage_estimate

from flows.planning import require_methods as require_methods_of
from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from infra.settings import Settings
from models.methods.advantages.critic import Critic
from models.methods.groupings.task import Task
from models.methods.losses import open_loss
from models.methods.losses.ppo import Ppo, PpoOptions, clipped_value_loss, gae
from models.methods.method import NoOptions
from models.methods.rewards.outcome import Outcome
from models.methods.scoring import Scoring
from models.methods.streams import TrainingGroup, TrainingStream
from models.network.trained_parameters import make_trainable
from models.training.checkpoints import load_optimizer, optimizer_state
from models.training.memory_estimate import of_update
from schemas.errors import RecipeError
from schemas.recipes.methods import LossRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from tests.training import batch_of, rl, trainer_of
from tests.unit.test_grpo import episode
from tests.unit.tiny import tiny_network


def test_advantages_by_hand():
    found = gae([0, 0, 1], [0.5, 0.6, 0.8], [0, 0, 0], 1.0, 0.95)
    assert found == pytest.approx([0.4705, 0.39, 0.2])
    assert [a + v for a, v in zip(found, [0.5, 0.6, 0.8], strict=True)] == pytest.approx([0.9705, 0.99, 1])
    assert gae([0, 0, 1], [0.5, 0.6, 0.8], [0, 0, 0], 1.0, 1.0) == pytest.approx([0.5, 0.4, 0.2])


def test_an_episode_knows_nothing_of_the_next():
    both = gae([0, 1, 0, 0], [0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], 0.9, 0.8)
    assert both == gae([0, 1], [0.1, 0.2], [0, 0], 0.9, 0.8) + gae([0, 0], [0.3, 0.4], [7, 7], 0.9, 0.8)


UNITS = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=8)


@given(UNITS, st.floats(0, 1), st.floats(0, 1))
def test_they_are_the_sum_of_discounted_errors(units, discount, decay):
    rewards, values = [r for r, _ in units], [v for _, v in units]
    errors = [r + discount * after - v for r, v, after in zip(rewards, values, [*values[1:], 0], strict=True)]
    expected = [
        sum((discount * decay) ** k * error for k, error in enumerate(errors[start:])) for start in range(len(errors))
    ]
    assert gae(rewards, values, [0] * len(units), discount, decay) == pytest.approx(expected, abs=1e-9)


def test_value_loss_by_hand():
    old, value = torch.tensor([0.6, 0.6]), torch.tensor([1.3, 1.3])
    found = clipped_value_loss(value, old, torch.tensor([0.2, 1.5]), 0.5)
    assert found.tolist() == pytest.approx([1.21 / 2, 0.16 / 2])


def turns_of(*lengths: int, first: int = 1) -> Tokens:
    """Return an episode in one stream: after two tokens of a state comes an action of each length."""
    ids, is_action = [], []
    for length in lengths:
        ids += [first, first + 1, *range(first + 2, first + 2 + length)]
        is_action += [False, False, *[True] * length]
        first += 7
    return Tokens(ids, is_action, [0.0] * len(ids))


def group() -> TrainingGroup:
    """Return two episodes of two turns; the second one succeeds."""
    streams = [
        TrainingStream(turns_of(2, 1), [0.0, 0.0], 0),
        TrainingStream(turns_of(1, 3, first=3), [0.0, 1.0], 1),
    ]
    return TrainingGroup(streams, [0.0, 1.0], "group")


def trainer(training: TrainingRecipe | None = None, **options):
    network = tiny_network(seed=3)
    make_trainable(network, training or TrainingRecipe(), seed=0)
    return trainer_of(network, None, rl(loss={"name": "ppo", **options}, learning_rate=1e-2, updates_per_round=1))


@pytest.mark.parametrize(
    ("credit", "advantages"), [("turn", [0, 0, 0, 0.95, 1, 1, 1]), ("token", [0, 0, 0, 0.95**3, 0.95**2, 0.95, 1])]
)
def test_before_the_critic_knows_anything_advantages_are_decayed_returns(credit, advantages):
    training = trainer(credit=credit, trace_decay=0.95)
    [micro] = training._prepared([group()], is_first=True)
    found, returns, values = micro.kept_NK.unbind(1)
    raw = torch.tensor(advantages)
    torch.testing.assert_close(found, (raw - raw.mean()) / raw.std(correction=0))
    torch.testing.assert_close(returns, raw)
    assert values.tolist() == [0] * 7


def test_the_critic_learns_what_returns_are():
    training = trainer(critic_trains_policy=False, critic_warmup=1000, trace_decay=1.0, value_clip=100.0)
    before = [p.detach().clone() for p in training.network.parameters()]
    for _ in range(200):
        training.train([group()])
    assert all(torch.equal(a, b) for a, b in zip(before, training.network.parameters(), strict=True)), "only the head"
    [micro] = training._prepared([group()], is_first=True)
    torch.testing.assert_close(micro.kept_NK[:, 2], torch.tensor([0.0, 0, 0, 1, 1, 1, 1]), atol=0.1, rtol=0)


def test_after_the_warm_up_the_policy_is_trained():
    training = trainer(critic_warmup=1)
    weights = [p.detach().clone() for p in training.network.parameters()]
    training.train([group()])
    assert all(torch.equal(a, b) for a, b in zip(weights, training.network.parameters(), strict=True))
    training.train([group()])
    assert not all(torch.equal(a, b) for a, b in zip(weights, training.network.parameters(), strict=True))


def test_the_update_does_not_depend_on_how_micro_batches_are_cut():
    after = []
    for tokens_per_batch in (1, 10_000):
        network = tiny_network(seed=3)
        options = rl(loss={"name": "ppo"}, learning_rate=1e-2, updates_per_round=1)
        several = [group(), TrainingGroup([TrainingStream(turns_of(2, 2, first=9), [0.0, 1.0])], [1.0], "other")]
        trainer_of(network, None, options, tokens_per_batch).train(several)
        after.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    torch.testing.assert_close(*after, atol=1e-6, rtol=1e-5)


def test_the_critic_is_saved_and_restored_with_the_optimiser():
    whole, cut = trainer(), trainer()
    whole.train([group()])
    whole.train([group()])
    cut.train([group()])
    resumed = trainer()
    resumed.network.load_state_dict(cut.network.state_dict())
    load_optimizer(resumed.optimizer, optimizer_state(cut.optimizer, cut.own_network), resumed.own_network)
    resumed.train([group()])
    for one, other in zip(whole.network.parameters(), resumed.network.parameters(), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(whole.own_network.head.weight, resumed.own_network.head.weight)


def test_lost_groups_train_too_since_the_critic_is_the_baseline():
    methods = Scoring(Task(NoOptions()), Outcome(NoOptions()), Critic(NoOptions()))
    scored, counts = methods.informative_groups([episode(0), episode(0)])
    assert len(scored) == 1
    assert counts["all_failed"] == 0


def test_an_episode_needs_no_group_and_a_method_that_compares_episodes_refuses_groups_of_one():
    methods = Scoring(Task(NoOptions()), Outcome(NoOptions()), Critic(NoOptions()))
    scored, _ = methods.informative_groups([episode(0, group="one"), episode(1, group="other")])
    assert [len(one.streams) for one in scored] == [1, 1]
    alone = ("rl.group_size=1", "rl.groups_per_round=240")
    require_methods(load_recipe("textworld-tiny", [*alone, "rl.loss.name=ppo", "rl.advantage.name=critic"]))
    with pytest.raises(RecipeError, match=r"rl\.group_size = 1 leaves rl\.advantage 'grpo' nothing to compare"):
        require_methods(load_recipe("textworld-tiny", alone))


def test_with_a_critic_that_says_0_it_is_the_clipped_surrogate_of_whitened_returns():
    returns = torch.tensor([0.0, 0, 0, 1, 1, 1, 1])
    low, high = ((value - returns.mean()) / returns.std(correction=0) for value in (0.0, 1.0))
    lost, won = group().streams
    whitened = TrainingGroup([replace(lost, advantages=[float(low)] * 2), replace(won, advantages=[float(high)] * 2)])
    after = []
    for loss, shown in (({"name": "ppo", "trace_decay": 1.0, "critic_trains_policy": False}, group()), ({}, whitened)):
        network = tiny_network(seed=3)
        options = rl(loss=loss | {"kl_coefficient": 0.0}, learning_rate=1e-2, updates_per_round=1, max_grad_norm=1e9)
        training = trainer_of(network, None, options)
        training.optimizer = torch.optim.SGD(training._parameters())  # weights move by the gradients
        training.train([shown])
        after.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    torch.testing.assert_close(*after, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("warming", [True, False])
def test_a_critic_with_a_network_of_its_own_learns_without_moving_the_policy(warming):
    training = trainer(critic="copy", critic_warmup=1000 * warming, trace_decay=1.0, value_clip=100.0)
    alone = trainer(critic_warmup=1000 * warming, critic_trains_policy=False, trace_decay=1.0, value_clip=100.0)
    [micro], [others] = (one._prepared([group()], is_first=True) for one in (training, alone))
    torch.testing.assert_close(micro.kept_NK, others.kept_NK)
    before = [p.detach().clone() for p in training.own_network.backbone.parameters()]
    for _ in range(20):
        training.train([group()])
    assert not all(torch.equal(a, b) for a, b in zip(before, training.own_network.backbone.parameters(), strict=True))
    policy = [p.detach().clone() for p in training.network.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, policy, strict=True)) == warming
    [micro] = training._prepared([group()], is_first=True)
    torch.testing.assert_close(micro.kept_NK[:, 2], torch.tensor([0.0, 0, 0, 1, 1, 1, 1]), atol=0.2, rtol=0)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_copied_critic_goes_on_from_its_state(rank):
    adapters = TrainingRecipe(lora_rank=rank)
    whole, cut = trainer(adapters, critic="copy"), trainer(adapters, critic="copy")
    whole.train([group()])
    whole.train([group()])
    cut.train([group()])
    resumed = trainer(adapters, critic="copy")
    resumed.network.load_state_dict(cut.network.state_dict())
    load_optimizer(resumed.optimizer, optimizer_state(cut.optimizer, cut.own_network), resumed.own_network)
    resumed.train([group()])
    for one, other in zip(whole._parameters(), resumed._parameters(), strict=True):
        assert torch.equal(one, other)
    beneath = [weight for weight in whole.own_network.parameters() if not weight.requires_grad]
    assert {id(weight) for weight in beneath} <= {id(weight) for weight in whole.network.parameters()}


def test_a_copied_critic_counts_as_a_second_network_and_is_refused_on_several_ranks(monkeypatch):
    config, ppo = tiny_network().config, {"name": "ppo", "value_clip": 0.5}
    head, copied = (
        of_update(config, TrainingRecipe(), 2, 4, 2, torch.float32, open_loss(LossRecipe(**ppo, critic=critic)))
        for critic in ("head", "copy")
    )
    policy = sum(weight.nbytes for weight in tiny_network().parameters())
    assert copied.weights - head.weights == policy
    assert copied.optimizer - head.optimizer == 2 * policy
    assert copied.activations == 2 * head.activations
    recipe = load_recipe("textworld-tiny", ["rl.loss={name='ppo', critic='copy'}", "rl.advantage={name='critic'}"])
    require_methods(recipe)
    monkeypatch.setattr(require_methods_of, "settings", lambda: Settings(num_ranks=2))
    with pytest.raises(RecipeError, match="does not train on several ranks"):
        require_methods(recipe)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 1000))
@settings(deadline=None, max_examples=25)
def test_advantages_losses_and_gradients_are_those_of_torchrl(lengths, seed):
    torch.manual_seed(seed)
    num_tokens, size = sum(lengths), 4
    episodes = [number for number, length in enumerate(lengths) for _ in range(length)]
    ends = torch.tensor([*map(bool, [one != other for one, other in pairwise(episodes)]), True])
    hidden, logits = torch.randn(num_tokens, size), torch.randn(num_tokens, 5, requires_grad=True)
    actions, rewards = torch.randint(5, (num_tokens,)), torch.randn(num_tokens) * ends
    logprobs = logits.log_softmax(-1).gather(1, actions[:, None])[:, 0]
    old = logprobs.detach() + torch.randn(num_tokens) * 0.3
    head = torch.nn.Linear(size, 1)
    batch = replace(batch_of(logprobs, old, rewards, lengths=lengths), hidden_NH=hidden, network=head)
    chosen = {"credit": "token", "discount": 0.9, "trace_decay": 0.8, "clip_low": 0.2, "clip_high": 0.2}
    loss = Ppo(PpoOptions(**chosen, value_clip=0.3, kl_coefficient=0.0))
    with torch.no_grad():
        [kept] = loss.prepare([batch], [1.0])
        values = head(hidden)
        after = torch.cat([values[1:], values[:1] * 0]) * ~ends[:, None]
        advantages, returns = generalized_advantage_estimate(
            0.9, 0.8, values, after, rewards[:, None], ends[:, None], time_dim=0
        )
    whitened = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
    torch.testing.assert_close(kept, torch.cat([whitened, returns, values], 1), atol=1e-5, rtol=1e-4)

    with torch.no_grad():  # values move before the second update of a round
        head.weight += 0.5
    ours, _ = loss.rl(replace(batch, kept_NK=kept))
    actor = ProbabilisticActor(
        TensorDictModule(lambda given: given, ["given"], ["logits"]), ["logits"], distribution_class=Categorical
    )
    theirs = ClipPPOLoss(
        actor,
        ValueOperator(head, ["hidden"]),
        clip_epsilon=0.2,
        entropy_bonus=False,
        critic_coeff=0.25,
        loss_critic_type="l2",
        clip_value=0.3,
    )
    names = {"advantage": whitened, "value_target": returns, "state_value": values}
    found = theirs(
        TensorDict(
            {"given": logits, "hidden": hidden, "action": actions, "action_log_prob": old, **names}, [num_tokens]
        )
    )
    expected = found["loss_objective"] + found["loss_critic"]
    torch.testing.assert_close(ours / num_tokens, expected)
    mine = torch.autograd.grad(ours / num_tokens, [logits, head.weight], retain_graph=True)
    others = torch.autograd.grad(expected, [logits, *theirs.critic_network_params.flatten_keys().values()])
    torch.testing.assert_close(mine[0], others[0])


def test_a_copied_critic_whose_gradients_are_not_finite_moves_nothing():
    training = trainer(critic="copy")
    before = [p.detach().clone() for p in training._parameters()]
    for weight in training._parameters():
        weight.grad = torch.zeros_like(weight)
    training.own_network.head.weight.grad.fill_(float("nan"))
    assert training._step()["nonfinite_updates"] == 1
    assert all(torch.equal(a, b) for a, b in zip(before, training._parameters(), strict=True))
