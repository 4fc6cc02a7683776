"""Observation loss: what real steps changed is learnt beside the actions, and changes nothing about their loss."""

from dataclasses import replace

import pytest
import torch

from flows.planning import require_methods as require_methods_of
from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from infra.settings import Settings
from models.methods.auxiliaries.observations import Observations, ObservationsOptions
from models.methods.scoring import Scoring
from models.methods.streams import TrainingGroup, TrainingStream
from models.network.language_model import load_model
from schemas.errors import RecipeError
from schemas.records import AgentTask, Failure, Step, Tokens, Trajectory, Turn
from tasks.backbones.find_backbone import SHIPPED
from tests.training import group_of, rl, scoring, trainer_of
from tests.unit.methods.streams import tokens
from tests.unit.tiny import tiny_network

FORMAT = load_model(SHIPPED / "textworld-tiny").format
TASK = AgentTask("t", "recipe: carrot fried diced", "train", "one")
BEFORE, AFTER = "- you: kitchen\n- carrot: held raw", "- you: kitchen\n- carrot: held fried"
TURNS = [
    Turn(BEFORE, "cook carrot with stove", Step(AFTER, 0.0, False, False)),
    Turn(AFTER, "eat meal", Step(AFTER, 0.0, True, False)),
]
METHOD = Observations(ObservationsOptions(weight=0.25))


def seen(turn: Turn, state: str = "") -> Tokens:
    prompt, action = FORMAT.turn_prompt(TASK, (), state or turn.state), FORMAT.action(turn.action)
    is_action = [False] * len(prompt) + [True] * len(action)
    return Tokens(prompt + action, is_action, [-1.0 * one for one in is_action])


def played(origin="real", **fields) -> Trajectory:
    whole = {"tokens": tuple(map(seen, TURNS)), "group_id": "g", **fields}
    return Trajectory(TASK, origin, TURNS, **whole)


def learnt(stream: TrainingStream) -> str:
    return FORMAT.decode([id for id, weight in zip(stream.tokens.ids, stream.ce_weights, strict=True) if weight])


def test_each_turn_is_followed_by_what_changed():
    first, second = METHOD.streams(played(), FORMAT)
    assert learnt(first) == "[next]\n- carrot: held fried[outcome] continue[end]"
    assert learnt(second).endswith("[outcome] failure[end]")
    assert set(first.ce_weights) == {0.0, 0.25}
    assert first.tokens.ids[: len(seen(TURNS[0]).ids)] == seen(TURNS[0]).ids
    assert not first.acts


def test_a_remembered_episode_is_learnt_as_it_stands():
    whole = Tokens([1, 2, 3, 4, 5, 6], [False, False, True, False, False, True], [0.0] * 6)
    (stream,) = METHOD.streams(played(tokens=(whole,)), FORMAT)
    assert stream.ce_weights == [0.0, 0.0, 0.0, 0.25, 0.25, 0.0]


def test_dreams_failures_and_renamed_turns_are_left_out():
    assert METHOD.streams(played(origin="dream"), FORMAT) == []
    renamed = (seen(TURNS[0], BEFORE.replace("carrot", "brolk")), seen(TURNS[1]))
    assert [learnt(one) for one in METHOD.streams(played(tokens=renamed), FORMAT)] == [
        learnt(METHOD.streams(played(), FORMAT)[1])
    ]
    parts = scoring()
    asked = Scoring(parts.grouping, parts.reward, parts.advantage, auxiliary=METHOD)
    broken = replace(played(), failure=Failure.ENVIRONMENT)
    (group,) = asked.auxiliary_groups([played(), broken], FORMAT)
    assert len(group.streams) == 2
    assert asked.auxiliary_groups([broken], FORMAT) == []


@pytest.mark.parametrize(
    "loss", [{"name": "clipped"}, {"name": "gspo"}, {"name": "ppo"}, {"name": "dpo"}, {"name": "sft"}]
)
@pytest.mark.parametrize("tokens_per_batch", [1, 16_000])
def test_the_loss_of_the_actions_is_as_without_and_the_mean_of_observed_tokens_is_added(loss, tokens_per_batch):
    group = group_of([tokens(3), tokens(2, first=20)], [1.0, -1.0])
    weights = [0.0, 0.0, 0.5, 0.5]
    observed = TrainingGroup([TrainingStream(Tokens([3, 4, 30, 31], [False] * 4, [0.0] * 4), [], ce_weights=weights)])
    options = rl(loss=loss, updates_per_round=1, learning_rate=1e-9)
    with_both, alone = (
        trainer_of(tiny_network(seed=1), tiny_network(seed=2), options, tokens_per_batch).train(groups)
        for groups in ([group, observed], [group])
    )
    network = tiny_network(seed=1)
    logprobs = torch.log_softmax(network(torch.tensor([[3, 4, 30, 31]])).logits[0].float(), -1)
    if loss["name"] == "sft":
        return
    mean = -0.5 * (logprobs[1, 30] + logprobs[2, 31]) / 2
    assert with_both["ce"] == pytest.approx(mean.item(), rel=1e-4)
    for name in ("loss", "entropy"):
        assert with_both[name] == pytest.approx(alone[name], rel=1e-5, abs=1e-7), name


def test_with_a_critic_it_is_refused_on_several_ranks(monkeypatch):
    observing, critic = ["rl.auxiliary.name=observations"], ["rl.loss.name=ppo", "rl.advantage={name='critic'}"]
    monkeypatch.setattr(require_methods_of, "settings", lambda: Settings(num_ranks=2))
    with pytest.raises(RecipeError, match="do not train together on several ranks"):
        require_methods(load_recipe("textworld-tiny", observing + critic))
    require_methods(load_recipe("textworld-tiny", observing))
    monkeypatch.setattr(require_methods_of, "settings", lambda: Settings(num_ranks=1))
    require_methods(load_recipe("textworld-tiny", observing + critic))
