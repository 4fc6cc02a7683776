"""A judge of states: it learns from the outcomes of dreams, as many of either, and says how likely a win is."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from models.examples.state_values import ValuedState, chance, outcome_examples, question
from models.methods.advantages.stepwiser import Stepwiser, StepwiserOptions
from models.methods.advantages.vine import Vine, VineOptions
from models.network.language_model import load_model
from models.training import trained_logprobs
from models.training.trained_logprobs import logprobs_by_group
from schemas.errors import RecipeError
from schemas.records import AgentTask
from tasks.backbones.find_backbone import SHIPPED

MODEL = load_model(SHIPPED / "textworld-tiny")
STATES = [ValuedState("t", "cook", "- a: b", 0.75), ValuedState("t", "cook", "- a: c", 0.0)]


def test_every_dream_is_an_example_of_how_it_ended():
    examples = outcome_examples(MODEL.format, STATES, 8)
    assert Counter(MODEL.format.decode(one.ids) for one in examples) == {
        "[task] cook[state]\n- a: b[outcome] success": 6,
        "[task] cook[state]\n- a: b[outcome] failure": 2,
        "[task] cook[state]\n- a: c[outcome] failure": 8,
    }
    for one in examples:
        target = [id for id, wanted in zip(one.ids, one.is_target, strict=True) if wanted]
        assert MODEL.format.decode(target) in (" success", " failure")


def test_dreams_that_all_ended_alike_teach_nothing():
    assert outcome_examples(MODEL.format, STATES[1:], 8) == []
    assert outcome_examples(MODEL.format, [replace(STATES[0], value=1.0)], 8) == []
    assert outcome_examples(MODEL.format, [], 8) == []


def test_the_chance_to_win_by_hand():
    assert chance(MODEL.format, [-1.0, -1.0]) == 0.5
    assert chance(MODEL.format, [-0.5, -1.5]) == pytest.approx(0.7311, abs=1e-4)


def test_both_answers_are_read_from_the_network(monkeypatch):
    monkeypatch.setattr(trained_logprobs, "matmul_dtype", lambda device: torch.float32)
    tasks = [AgentTask("t", text, "train", "f", initial_state="- a: b") for text in ("cook", "cook a longer recipe")]
    questions = [question(MODEL.format, task, number) for number, task in enumerate(tasks)]
    for group, logprobs in logprobs_by_group(MODEL.network, questions, 1.0, 1):
        prompt = MODEL.format.value_prompt(tasks[int(group.group_id)], "- a: b")
        after = MODEL.network(torch.tensor([prompt])).logits[0, -1].float().log_softmax(-1)
        won, lost = (MODEL.format.value(won=one)[0] for one in (True, False))
        assert logprobs == pytest.approx([after[won].item(), after[lost].item()], abs=1e-3)


def test_values_are_dreamt_for_some_rounds_and_judged_from_then_on():
    assert Stepwiser(StepwiserOptions(dreamt_rounds=3)).dreamt_rounds == 3
    assert Vine(VineOptions()).dreamt_rounds is None


def test_a_model_at_an_endpoint_is_no_judge_of_states():
    recipe = load_recipe("textworld-tiny", ["rl.advantage.name=stepwiser", "experience.endpoint_model=some-model"])
    with pytest.raises(RecipeError, match=r"is not trained: use rl\.advantage\.name = 'vine'"):
        require_methods(recipe)
