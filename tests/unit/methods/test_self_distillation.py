"""Self-distillation: what the policy would rather have done after a demonstration is learnt, token by token."""

from dataclasses import replace

import pytest
import torch

from models.methods.auxiliaries.self_distillation import SelfDistillation, SelfDistillationOptions, gate
from models.methods.scoring import Scoring
from models.methods.streams import TrainingGroup
from models.network.language_model import load_model
from models.rollout.wins import most_similar
from models.training import trained_logprobs
from models.training.demonstrated_policy import DemonstratedPolicy
from schemas.records import AgentTask, Failure, Step, Tokens, Trajectory, Turn
from tasks.backbones.find_backbone import SHIPPED
from tests.training import group_of, rl, scoring, trainer_of
from tests.unit.methods.streams import tokens
from tests.unit.tiny import tiny_network

MODEL = load_model(SHIPPED / "textworld-tiny")
TASK = AgentTask("fried", "recipe: carrot fried diced", "train", "one")
BEFORE, AFTER = "- you: kitchen\n- carrot: held raw", "- you: kitchen\n- carrot: held fried"
TURNS = [
    Turn(BEFORE, "cook carrot with stove", Step(AFTER, 0.0, False, False)),
    Turn(AFTER, "eat meal", Step(AFTER, 1.0, True, True)),
]
METHOD = SelfDistillation(SelfDistillationOptions())


def seen(turn: Turn, task: AgentTask = TASK) -> Tokens:
    prompt, action = MODEL.format.turn_prompt(task, (), turn.state), MODEL.format.action(turn.action)
    is_action = [False] * len(prompt) + [True] * len(action)
    return Tokens(prompt + action, is_action, [-1.0 * one for one in is_action])


EPISODE = Trajectory(TASK, "dream", TURNS, tokens=tuple(map(seen, TURNS)), group_id="g")
WIN = Trajectory(TASK, "real", TURNS)


def teacher(*wins: Trajectory, tokens_per_batch: int = 16_000) -> DemonstratedPolicy:
    return DemonstratedPolicy(MODEL, wins, 1.0, tokens_per_batch)


def test_a_token_that_the_teacher_prefers_weighs_more():
    assert [gate(preference, 5.0) for preference in (0.2, 0.0, -0.2)] == pytest.approx([0.7311, 0.5, 0.2689], abs=1e-4)
    stream = Tokens([7, 8, 9, 10], [False, True, True, True], [0.0, -1.0, -1.0, -1.0])
    (found,) = METHOD.streams(replace(EPISODE, tokens=(stream,)), MODEL.format, [[-0.8, -1.0, -1.2]])
    assert found.ce_weights == pytest.approx([0.0, 0.007311, 0.005, 0.002689], abs=1e-6)
    assert not found.acts


def test_a_teacher_that_is_no_wiser_gives_half_the_weight_to_every_token():
    alike = [[-1.0] * sum(stream.is_action) for stream in EPISODE.tokens]
    weights = {one for stream in METHOD.streams(EPISODE, MODEL.format, alike) for one in stream.ce_weights}
    assert weights == {0.0, 0.005}


@pytest.mark.parametrize("tokens_per_batch", [1, 16_000])
def test_the_teacher_is_the_policy_after_a_demonstration(tokens_per_batch, monkeypatch):
    monkeypatch.setattr(trained_logprobs, "matmul_dtype", lambda device: torch.float32)
    (found,) = teacher(WIN, tokens_per_batch=tokens_per_batch).logprobs([EPISODE])
    for turn, logprobs in zip(TURNS, found, strict=True):
        shown = MODEL.format.ids("[demo]", " cook carrot with stove; eat meal")
        prompt = MODEL.format.task(TASK) + shown + MODEL.format.state(turn.state)
        action = MODEL.format.action(turn.action)
        logits = MODEL.network(torch.tensor([prompt + action])).logits[0].float().log_softmax(-1)
        expected = [logits[len(prompt) + place - 1, id].item() for place, id in enumerate(action)]
        assert logprobs == pytest.approx(expected, abs=1e-3)


def test_failures_other_names_and_missing_wins_have_no_teacher():
    renamed = (seen(TURNS[0], replace(TASK, instruction="recipe: brolk fried diced")), seen(TURNS[1]))
    (found,) = teacher(WIN).logprobs([replace(EPISODE, tokens=renamed)])
    assert not found[0]
    assert found[1]
    assert teacher(WIN).logprobs([replace(EPISODE, failure=Failure.TOO_LONG)]) == [[[], []]]
    assert teacher().logprobs([EPISODE]) == [[[], []]]
    parts = scoring()
    asked = Scoring(parts.grouping, parts.reward, parts.advantage, auxiliary=METHOD)
    assert asked.auxiliary_groups([EPISODE], MODEL.format, teacher().logprobs) == []
    (group,) = asked.auxiliary_groups([EPISODE], MODEL.format, teacher(WIN).logprobs)
    assert len(group.streams) == 2


def test_the_win_of_the_task_itself_comes_first_then_the_most_similar_one():
    def won(name: str, instruction: str) -> Trajectory:
        return Trajectory(replace(TASK, task_id=name, instruction=instruction), "real", TURNS)

    same, near, far = (
        won("fried", "something else"),
        won("near", "recipe: carrot fried sliced"),
        won("far", "put a mug away"),
    )
    assert most_similar(TASK, [far, near, same]) is same
    assert most_similar(TASK, [far, near]) is near


def test_the_gradient_is_that_of_the_weighted_log_probabilities():
    acting = group_of([tokens(3), tokens(2, first=20)], [1.0, -1.0])
    stream = acting.streams[0].tokens
    gates = [0.7311 if action else 0.0 for action in stream.is_action]
    taught = [[-1.0 + 0.2] * sum(stream.is_action)]
    sampled = replace(stream, logprobs=[-1.0 * action for action in stream.is_action])
    (learnt,) = METHOD.streams(replace(EPISODE, tokens=(sampled,)), MODEL.format, taught)
    network = tiny_network(seed=1)
    metrics = trainer_of(network, None, rl(updates_per_round=1, learning_rate=1e-9)).train(
        [acting, TrainingGroup([learnt])]
    )
    logprobs = tiny_network(seed=1)(torch.tensor([stream.ids])).logits[0].float().log_softmax(-1)
    by_hand = [
        -0.01 * gates[place] * logprobs[place - 1, stream.ids[place]].item()
        for place in range(1, len(stream.ids))
        if stream.is_action[place]
    ]
    assert metrics["ce"] == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-3)
