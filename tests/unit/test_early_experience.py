"""Early Experience: which other actions are tried, where they lead, and what is learnt from them."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.environments.cooking.annotator import FactsAnnotator
from infra.environments.cooking.environment import CookingEnvironment
from models.examples.early_experience import consequence_example, reflection_example
from models.generation.torch_engine import TorchEngine, engine_weights
from models.network.language_model import load_model
from models.rollout.alternatives import forks, taken_for_real, taken_in_a_dream
from models.rollout.behaviour_policies import collect
from models.rollout.proposals import other_actions, proposed_by_environment, proposed_by_policy
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.backbones.find_backbone import SHIPPED
from tasks.data.annotate import with_reasoning
from tests.rollouts import plain_policy

RULES = {"recipe": 1, "take": 1, "go": 1, "open": False, "cook": True, "cut": True}
K = 4


@pytest.fixture(scope="module")
def environment():
    return CookingEnvironment({"one": RULES})


@pytest.fixture(scope="module")
def demonstrations(environment) -> list[Trajectory]:
    return collect(environment, environment.tasks("train", 3), [0.0], 0, 40)


@pytest.fixture(scope="module")
def model():
    return load_model(SHIPPED / "textworld-tiny")


@given(
    st.text(" abAB", max_size=4),
    st.lists(st.lists(st.text(" abAB", max_size=4), max_size=6), max_size=3),
    st.integers(0, 5),
)
def test_no_other_action_is_the_demonstrated_one_and_no_two_are_alike(demonstrated, lists, num_wanted):
    def plain(action: str) -> str:
        return " ".join(action.lower().split())

    found = [plain(one) for one in other_actions(demonstrated, lists, num_wanted, random.Random(0))]
    possible = {plain(one) for several in lists for one in several} - {"", plain(demonstrated)}
    assert len(found) == len(set(found)) == min(num_wanted, len(possible))
    assert set(found) <= possible


def test_accepted_and_refused_actions_come_in_turn():
    found = other_actions("go", [["a", "b", "c"], ["x", "y", "z"]], 4, random.Random(0))
    assert [one in "abc" for one in found] == [True, False, True, False]


def test_each_state_of_a_demonstration_has_k_other_actions_and_its_steps_count(environment, demonstrations):
    proposals, num_steps = proposed_by_environment(demonstrations, environment, K, random.Random(0))
    assert num_steps == sum(len(one.turns) for one in demonstrations)
    assert [len(of_turns) for of_turns in proposals] == [len(one.turns) for one in demonstrations]
    assert all(len(actions) == K for of_turns in proposals for actions in of_turns)


def test_a_demonstration_that_goes_another_way_here_has_none_from_there_on(environment, demonstrations):
    first, second, *rest = demonstrations[0].turns
    strange = replace(demonstrations[0], turns=[first, replace(second, state="elsewhere"), *rest])
    ((at_first, *later),), num_steps = proposed_by_environment([strange], environment, K, random.Random(0))
    assert len(at_first) == K
    assert later == [[] for _ in later]
    assert num_steps == 1


def test_an_alternative_ends_where_its_action_really_leads(environment, demonstrations):
    proposals, _ = proposed_by_environment(demonstrations[:1], environment, K, random.Random(0))
    asked = forks(demonstrations[:1], proposals)
    taken, num_steps = taken_for_real(asked, environment)
    assert num_steps == sum(len(one.turns) for one in asked) == K * sum(range(1, len(demonstrations[0].turns) + 1))
    assert [one.actions for one in taken] == [one.actions for one in asked]
    for one in taken:
        environment.reset({0: one.task})
        for turn in one.turns:
            step = environment.step({0: turn.action})[0]
            assert turn.step == step
    assert {one.origin for one in taken} == {"real"}


def test_what_goes_another_way_or_fails_is_left_out(environment, demonstrations):
    first, second, *_ = demonstrations[0].turns
    elsewhere = replace(demonstrations[0], turns=[first, replace(second, state="elsewhere", action="look")])
    assert taken_for_real([elsewhere], environment)[0] == []

    class Broken(CookingEnvironment):
        def step(self, actions):
            return {slot: Step("", 0.0, False, False, failure=Failure.ENVIRONMENT) for slot in actions}

    broken = Broken({"one": RULES})
    assert (
        taken_for_real(forks(demonstrations[:1], [[["look"]] + [[]] * (len(demonstrations[0].turns) - 1)]), broken)[0]
        == []
    )


def test_a_dream_predicts_the_last_step_alone_and_marks_it(demonstrations):
    class Dreamer:
        def reset(self, tasks):
            self.states = {slot: task.initial_state for slot, task in tasks.items()}
            return self.states

        def step(self, actions):
            assert self.states == {slot: one.turns[-1].state for slot, one in enumerate(asked)}
            broken = {slot: Failure.UNPARSABLE if action == "break" else None for slot, action in actions.items()}
            return {slot: Step("dreamt", 0.0, False, False, failure=broken[slot]) for slot in actions}

    turns = len(demonstrations[0].turns)
    asked = forks(demonstrations[:1], [[[]] * (turns - 1) + [["look", "break"]]])
    (one,) = taken_in_a_dream(asked, Dreamer())
    assert (one.origin, one.turns[-1].action, one.turns[-1].step.state) == ("dream", "look", "dreamt")
    assert one.turns[:-1] == demonstrations[0].turns[:-1]


def test_a_policy_proposes_other_actions_than_the_demonstrated_ones(model, demonstrations):
    engine = TorchEngine(engine_weights(model.network), 0)
    proposals = proposed_by_policy(
        demonstrations, engine, plain_policy(model.format, remember_episode=False), 2, random.Random(0)
    )
    for one, of_turns in zip(demonstrations, proposals, strict=True):
        for turn, actions in zip(one.turns, of_turns, strict=True):
            assert len(actions) <= 2
            assert turn.action not in actions
    assert sum(len(actions) for of_turns in proposals for actions in of_turns) > 0


def test_what_is_learnt_of_a_consequence_is_what_changes(model, environment, demonstrations):
    proposals, _ = proposed_by_environment(demonstrations[:1], environment, 1, random.Random(0))
    (one, *_), _ = taken_for_real(forks(demonstrations[:1], proposals), environment)
    example = consequence_example(model.format, one, history_length=2)
    learnt = [id for id, target in zip(example.ids, example.is_target, strict=True) if target]
    prompt = example.ids[: -len(learnt)]
    assert model.format.decode(learnt).startswith("[next]")
    assert model.format.decode(prompt).endswith(f"[action] {one.turns[-1].action}")


def explained(*turns: Turn) -> Trajectory:
    episode = Trajectory(AgentTask("t", "recipe: carrot fried diced", "train", "one"), "real", list(turns))
    (reasons,) = FactsAnnotator().annotate([episode])
    return with_reasoning(episode, reasons)


STATE = "- you: kitchen\n- kitchen: stove\n- carrot: held raw uncut"
AFTER = STATE.replace("raw", "fried")
RIGHT = Turn(STATE, "cook carrot with stove", Step(AFTER, 0.0, False, False))


@pytest.mark.parametrize("remember_episode", [False, True])
def test_a_reflection_says_why_and_then_acts(model, remember_episode):
    other = Turn(STATE, "open carrot", Step(STATE, 0.0, False, False))
    format = plain_policy(model.format, remember_episode=remember_episode)
    example = reflection_example(format, explained(RIGHT), explained(other))
    assert example
    place = example.is_target.index(True)
    assert model.format.decode(example.ids[:place]) == f"[task] recipe: carrot fried diced[state]\n{STATE}[think]"
    why = f"open carrot: {explained(other).turns[0].step.reasoning} cook carrot with stove: "
    said = model.format.decode(example.ids[place:])
    assert said.startswith(f" {why}")
    assert said.endswith("[action] cook carrot with stove[end]")
    assert "refused" in said
    assert "works" in said


def test_nothing_speaks_against_an_action_that_wins_or_belongs_elsewhere(model):
    winning = Turn(STATE, "eat meal", Step("- you: full", 1.0, True, True))
    elsewhere = Turn("- you: garden", "eat meal", Step("- you: garden", 0.0, False, False))
    for other in (winning, elsewhere):
        assert reflection_example(plain_policy(model.format), explained(RIGHT), explained(other)) is None
