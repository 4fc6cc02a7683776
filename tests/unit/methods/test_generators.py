"""Worth of generated tasks by hand, and which of them a generator learns from."""

import pytest

from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from models.methods.generators.frozen import Frozen
from models.methods.generators.genenv import Genenv, GenenvOptions
from models.methods.generators.spice import Spice, SpiceOptions
from models.methods.method import NoOptions
from schemas.errors import RecipeError
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.learning.train_generator import shares_won


@pytest.mark.parametrize(("share", "worth"), [(0, 0.0439), (0.125, 0.3720), (0.25, 0.8226), (0.5, 1)])
def test_spice_by_hand(share, worth):
    method = Spice(SpiceOptions())
    assert method.band(share) == pytest.approx(worth, abs=1e-4)
    assert method.worth(share) == (method.band(share) if share else 0)


@pytest.mark.parametrize(("share", "worth"), [(0, 0.6065), (0.25, 0.8825), (0.5, 1), (1, 0.6065)])
def test_genenv_by_hand(share, worth):
    method = Genenv(GenenvOptions())
    assert method.band(share) == pytest.approx(worth, abs=1e-4)
    assert method.worth(share) == (method.band(share) if 0 < share < 1 else 0)


def test_the_default_trains_nothing():
    assert not Frozen.trains
    assert Frozen(NoOptions()).worth(0.5) == 0


def episode(name: str, parent: str, group: str, *, success: bool, failure: Failure | None = None) -> Trajectory:
    task = AgentTask(name, "cook", "train", "one", initial_state="s0", parent_id=parent)
    turns = [Turn("s0", "eat", Step("s1", float(success), True, success))]
    return Trajectory(task, "dream", turns, failure=failure, group_id=group)


def test_shares_are_those_of_whole_groups_of_generated_tasks():
    episodes = [
        *(episode("t/generated/1", "t", "a", success=won) for won in (True, False, False, False)),
        *(episode("t", "", "b", success=won) for won in (True, False)),
        *(episode("t#2", "t", "c", success=won) for won in (True, False)),
        episode("t/generated/2", "t", "d", success=True),
        episode("t/generated/2", "t", "d", success=False, failure=Failure.TOO_LONG),
    ]
    assert [(task.task_id, share) for task, share in shares_won(episodes)] == [("t/generated/1", 0.25)]


def test_a_generator_elsewhere_cannot_be_trained_here():
    changes = ["curriculum.generator.name=spice", 'curriculum.generator_model="a/b"']
    with pytest.raises(RecipeError, match="trains a network here"):
        require_methods(load_recipe("textworld-tiny", changes))
    require_methods(load_recipe("textworld-tiny", changes[:1]))
