import numpy as np

from models.retrieval.encoders import HashingEncoder
from models.retrieval.replay_index import IndexedTransition, ReplayIndex, join
from models.text.prompts import TransitionQuery
from schemas.records import AgentTask, Step, Trajectory, Turn
from schemas.state_text import apply_changes

ENCODER = HashingEncoder()


def situation(instruction, state, action, trajectory="mine"):
    return TransitionQuery(AgentTask(instruction, instruction, "train", "f"), state, action, trajectory_id=trajectory)


def transition(instruction, state, action, trajectory, dreamt, changes):
    turn = Turn(state, action, Step(apply_changes(state, changes), 0.0, done=False, success=False))
    episode = Trajectory(situation(instruction, state, action).task, "dream" if dreamt else "real", [turn])
    return IndexedTransition.of(trajectory, episode, turn, "changes")


def index_of(*entries, share=0.5):
    index = ReplayIndex(ENCODER, share)
    vectors = join(ENCODER, [e[0] for e in entries], [e[1] for e in entries], [e[2] for e in entries])
    index.add(vectors, [transition(*entry) for entry in entries])
    return index


def test_what_another_episode_of_the_task_saw_comes_back():
    index = index_of(
        ("soup", "- fridge: closed", "open fridge", "other", False, "- fridge: open\n- milk: fridge"),
        ("cake", "- fridge: closed", "open fridge", "third", False, "- fridge: open\n- egg: fridge"),
        ("soup", "- fridge: closed", "go north", "other", False, "- you: hall"),
    )
    [[shown]] = index.retrieve([situation("soup", "- fridge: closed\n- knife: table", "open fridge")], 1)
    assert "milk" in shown


def test_nothing_comes_from_the_querys_own_trajectory():
    index = index_of(("soup", "- a: b", "open fridge", "mine", False, "- leak: leak"))
    assert index.retrieve([situation("soup", "- a: b", "open fridge")], 3) == [[]]


def test_dreamt_demonstrations_are_bounded():
    entries = [("soup", f"- a: {i}", "open fridge", f"d{i}", True, "- x: y") for i in range(6)]
    index = index_of(*entries, ("soup", "- far: off", "go north", "real", False, "- real: one"))
    [shown] = index.retrieve([situation("soup", "- a: 1", "open fridge")], 4)
    assert len(shown) == 3
    assert sum("real" in text for text in shown) == 1


def test_many_dreams_of_one_moment_do_not_crowd_out_what_is_real():
    dreams = [("soup", "- a: b", "open fridge", f"d{i}", True, "- x: y") for i in range(100)]
    index = index_of(*dreams, ("soup", "- a: c", "open fridge", "real", False, "- real: one"))
    [[shown]] = index.retrieve([situation("soup", "- a: b", "open fridge")], 1)
    assert "real" in shown


def test_the_graph_index_finds_what_brute_force_finds():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(200, 3 * ENCODER.num_dimensions))
    vectors = (centres[rng.integers(0, 200, 25_000)] + 0.5 * rng.normal(size=(25_000, centres.shape[1]))).astype(
        np.float32
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = ReplayIndex(ENCODER)
    index.add(vectors[:15_000], [IndexedTransition(str(i), False, "") for i in range(15_000)])
    index.add(vectors[15_000:], [IndexedTransition(str(i), False, "") for i in range(10_000)])
    queries = vectors[:50]
    exact = np.argsort(-queries @ vectors.T, axis=1)[:, :5]
    found = index.search(queries, 5)
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, found, strict=True)])
    assert recall >= 0.95
