"""Variations of tasks: candidates, selection by rules or by a model, and the pairs that teach a generator."""

import random
from dataclasses import replace

import pytest
from pydantic import ValidationError

from models.examples.variation_pairs import variation_pairs
from models.experience.task_selector import TaskSelector
from schemas.recipes.learning import CurriculumRecipe
from schemas.records import AgentTask, Step, Trajectory, Turn
from tasks.curriculum.vary_tasks import generate

TASK = AgentTask("t", "fry the carrot", "train", "f", initial_state="- you: kitchen")


class Writer:
    """Generator that numbers its variations."""

    def vary(self, tasks, temperature):
        return [f"{task.instruction} {number}[state]\n- n: {number}" for number, task in enumerate(tasks)]


def test_each_task_has_as_many_candidates_as_asked_for():
    tasks = [TASK, replace(TASK, task_id="u", instruction="wash")]
    found = generate(Writer(), tasks, CurriculumRecipe(candidates_per_task=2))
    assert [(one.parent_id, one.instruction) for one in found] == [
        *(("t", "fry the carrot 0"), ("t", "fry the carrot 1")),
        *(("u", "wash 2"), ("u", "wash 3")),
    ]


class Chooser:
    """Chat model that gives the answers of a test."""

    def __init__(self, *answers: str) -> None:
        self.answers = answers

    def answer(self, questions, is_fine, num_attempts):
        self.questions = questions
        self.fine = [is_fine(number, text) for number, text in enumerate(self.answers)]
        return list(self.answers)


def test_a_model_selects_one_candidate_or_none():
    several = [replace(TASK, task_id=name, instruction=name) for name in ("first", "second")]
    answers = ("SELECTION: [2]\nREASONING: it is harder.", "SELECTION: 0", "the second", "SELECTION: [3]")
    chat = Chooser(*answers)
    chosen = TaskSelector(chat).select([(TASK, several)] * 4)
    assert [one and one.task_id for one in chosen] == ["second", None, None, None]
    assert chat.fine == [True, True, False, False]
    assert chat.questions[0].user == (
        "Original:\nfry the carrot\n- you: kitchen\n\nCandidate 1:\nfirst\n- you: kitchen\n\n"
        "Candidate 2:\nsecond\n- you: kitchen"
    )


def test_a_model_that_selects_has_a_name():
    with pytest.raises(ValidationError, match="needs curriculum"):
        CurriculumRecipe(candidates_per_task=3, select_by="model")


def started(name: str, state: str, family: str = "f") -> Trajectory:
    task = AgentTask(name, f"cook {name}", "train", family)
    return Trajectory(task, "real", [Turn(state, "look", Step(state, 0.0, done=False, success=False))])


def test_a_pair_is_of_the_most_alike_tasks_of_a_family():
    states = {f"{kind}{i}": f"- {kind}: table\n- {kind}er: {i}" for kind in ("egg", "cup") for i in range(4)}
    episodes = [started(name, state) for name, state in states.items()]
    episodes.append(started("alone", "- a: b", "other family"))
    pairs = variation_pairs(episodes, "nearest", random.Random(0))
    assert len(pairs) == 8
    for (task, state), (other, other_state) in pairs:
        assert task.task_id != other.task_id
        assert task.task_id[:3] == other.task_id[:3]
        assert states[other.task_id] == other_state != state


def test_random_pairs_are_of_one_family():
    episodes = [started(f"{family}{i}", f"- n: {i}", family) for family in "ab" for i in range(5)]
    pairs = variation_pairs(episodes, "random", random.Random(0))
    assert len(pairs) == 10
    assert all(first[0].family == second[0].family for first, second in pairs)
