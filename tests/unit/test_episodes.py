"""Logged episodes that count as one, and stored episodes that are recalled."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from models.retrieval.encoders import HashingEncoder
from schemas.records import AgentTask, Step, Trajectory, Turn
from tasks.data.recall import episodes_of
from tasks.data.rows import Provenance, rows_of
from tasks.logs.episodes import distinct, names_in_use


def episode(name: str, *actions: str, task: str = "t") -> Trajectory:
    turns = [
        Turn(f"- at: {i}", action, Step(f"- at: {i + 1}", 0.0, done=False, success=False))
        for i, action in enumerate(actions)
    ]
    return Trajectory(AgentTask(task, "do it", "train", "f"), "real", turns, truncated=True, episode_id=name)


def test_the_same_episode_twice_counts_once_and_is_counted():
    found = distinct([("monday", episode("1", "a", "b")), ("tuesday", episode("1", "a", "b"))])
    assert (len(found.trajectories), found.num_repeated, found.num_grown) == (1, 1, 0)


def test_two_runs_of_a_task_that_are_judged_otherwise_are_two_episodes():
    def run(reward: float, *actions: str) -> list[dict]:
        return [{"trajectory_id": "1", "action": one, "next_state": "s", "reward": reward} for one in actions]

    with names_in_use() as names:
        first, lost, again, grown, other, parted = (
            names.distinguished(one)[0]["trajectory_id"]
            for one in (
                run(1, "a", "b"),
                run(0, "a", "b"),
                run(0, "a", "b"),
                run(0, "a", "b", "c"),
                run(0, "b"),
                run(1, "a", "c"),
            )
        )
    assert first == grown == "1"
    assert lost == again != first
    assert len({first, lost, other, parted}) == 4


def test_of_one_that_grew_the_longer_form_counts_wherever_it_comes():
    short, long = episode("1", "a"), episode("1", "a", "b")
    for order in ([short, long], [long, short]):
        found = distinct([("a", order[0]), ("b", order[1])])
        assert found.trajectories == [long]
        assert found.num_grown == 1


def test_the_file_tells_equal_ids_of_different_episodes_apart():
    found = distinct([("a", episode("1", "x")), ("b", episode("1", "y")), ("c", episode("1", "x", task="other"))])
    assert [one.episode_id for one in found.trajectories] == ["1", "1 in b", "1 in c"]


def row_ids(one: Trajectory) -> list[str]:
    return [row["row_id"] for row in rows_of([one], Provenance("r", 0), HashingEncoder())]


def test_an_episode_that_grew_keeps_the_ids_of_its_rows():
    assert row_ids(episode("1", "a", "b"))[:1] == row_ids(episode("1", "a"))
    assert row_ids(episode("2", "a")) != row_ids(episode("1", "a"))


def stored(name: str, task_id: str, turns: int, *, ended=True) -> list[dict]:
    return [
        {
            **{"trajectory_id": name, "task_id": task_id, "turn": turn, "state": "- a: b", "action": "act"},
            **{"next_state": "- a: c", "reasoning": "so", "real_reward": 0.0, "success": False, "source": "policy"},
            **{"done": ended and turn == turns - 1, "truncated": False},
        }
        for turn in range(turns)
    ]


TRAIN = {name: AgentTask(name, "do it", "train", "f") for name in ("train/0", "train/1")}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["train/0", "train/1", "valid/0", "test/0", "train/9"]), st.integers(1, 4), st.booleans()
        ),
        max_size=8,
    ),
    st.randoms(use_true_random=False),
)
def test_only_whole_episodes_of_train_tasks_are_recalled_in_whatever_order_rows_come(kinds, rng):
    rows = [row for i, (task, turns, ended) in enumerate(kinds) for row in stored(str(i), task, turns, ended=ended)]
    rng.shuffle(rows)
    found = episodes_of(rows, TRAIN, set())
    wanted = {str(i) for i, (task, _, ended) in enumerate(kinds) if task in TRAIN and ended}
    assert {one.episode_id for one in found} == wanted
    assert all(one.task in TRAIN.values() for one in found)
    assert all([turn.action for turn in one.turns] == ["act"] * kinds[int(one.episode_id)][1] for one in found)


def test_what_the_logs_hold_is_not_recalled_again():
    rows = [*stored("mine", "train/0", 2), *stored("other", "train/1", 1)]
    assert [one.episode_id for one in episodes_of(rows, TRAIN, {"mine"})] == ["other"]


def test_without_an_id_the_content_is_the_name():
    bare = replace(episode("", "a"), episode_id="")
    assert row_ids(bare) == row_ids(bare)
    assert row_ids(bare) != row_ids(replace(episode("", "b"), episode_id=""))
