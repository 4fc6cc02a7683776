"""Refill of a round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.methods.curricula import open_curriculum
from schemas.recipes.methods import CurriculumMethodRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn


def group(number: int, *rewards: float, failure: Failure | None = None) -> list[Trajectory]:
    task = AgentTask(f"t{number}", "do it", "train", "f")
    steps = [Step("s", reward, done=True, success=reward > 0) for reward in rewards]
    return [Trajectory(task, "dream", [Turn("s", "a", step)], failure=failure, group_id=f"g{number}") for step in steps]


def missing(groups: list[list[Trajectory]], num_wanted: int, **options) -> int:
    curriculum = open_curriculum(CurriculumMethodRecipe(name="refill", **options), {})
    return curriculum.num_missing([one for members in groups for one in members], num_wanted)


def test_groups_that_teach_nothing_are_missing():
    played = [group(0, 1, 0), group(1, 1, 1), group(2, 0, 0), group(3, 1, 0, failure=Failure.UNPARSABLE)]
    assert missing(played, 4) == 3
    assert missing([group(0, 1, 0), group(1, 0, 1)], 2) == 0


@pytest.mark.parametrize(("num_played", "still"), [(4, 4), (9, 3), (12, 0)])
def test_the_number_of_draws_is_bounded(num_played, still):
    assert missing([group(number, 1, 1) for number in range(num_played)], 4) == still


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 12), st.floats(1, 4))
def test_a_round_never_exceeds_the_maximum(informative, num_wanted, most):
    played = [group(number, 1, 0 if teaches else 1) for number, teaches in enumerate(informative)]
    wanted = missing(played, num_wanted, max_draws=most)
    assert 0 <= wanted <= max(0, int(most * num_wanted) - len(played))
