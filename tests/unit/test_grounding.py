"""With which demonstrations the experience model is taught."""

import pytest

from models.encoders import HashingEncoder
from models.retrieval import Remembered, ReplayIndex, join
from schemas.recipe import ExperienceRecipe
from schemas.records import AgentTask, Step, Trajectory, Turn
from tasks.grounding import Grounding
from tasks.rows import trajectory_id

EPISODES = [
    Trajectory(
        AgentTask(food, food, "train", "f"),
        "real",
        [Turn(f"- noise: {noise}", "open fridge", Step(f"- {food}: fridge", 0.0, done=False, success=False))],
    )
    for food in ("milk", "egg")
    for noise in (1, 2)
]


def index() -> ReplayIndex:
    encoder, made = HashingEncoder(), ReplayIndex(HashingEncoder())
    for one in EPISODES:
        (turn,) = one.turns
        vectors = join(encoder, [one.task.instruction], [turn.state], [turn.action])
        made.add(vectors, [Remembered.of(trajectory_id(one), False, turn.action, turn.step.state)])
    return made


@pytest.mark.parametrize(("share", "own"), [(0.0, True), (1.0, False)])
def test_a_new_task_is_shown_what_other_tasks_saw_and_a_logged_one_what_its_own_did(share, own):
    grounding = Grounding(index(), 1, EPISODES, ExperienceRecipe(new_task_share=share), 0)
    for episode in EPISODES:
        ((shown,),) = (situation.demonstrations for situation in grounding.situations(episode))
        assert (episode.task.task_id in shown) is own


def test_some_episodes_are_shown_so_and_some_otherwise_and_always_the_same():
    recipe = ExperienceRecipe(new_task_share=0.5)
    first, again = (
        [g.situations(e)[0].demonstrations for e in EPISODES]
        for g in (Grounding(index(), 1, EPISODES, recipe, 3) for _ in range(2))
    )
    assert first == again
    assert len({e.task.task_id in shown[0] for e, shown in zip(EPISODES, first, strict=True)}) == 2
