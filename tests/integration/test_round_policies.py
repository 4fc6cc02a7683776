"""Policies of a training's rounds in the store: what stays, what is removed, and what is never touched."""

import pytest

from infra.context import objects
from schemas.errors import RemovedError, StorageError
from schemas.records import Reference
from tasks.learning.round_policies import RoundPolicies
from tasks.running.artifacts import forget, get_optimizer_state

pytestmark = pytest.mark.integration
STATE = "optimizer.safetensors"


@pytest.fixture
def stored(home, tmp_path):
    """Return a function that stores a policy of a few bytes, whose tokenizer is that of all others."""
    forget()
    folder = tmp_path / "policy"
    folder.mkdir()

    def store(name: str, state: str = "") -> Reference:
        (folder / "model.safetensors").write_text(name)
        (folder / STATE).write_text(state or f"state of {name}")
        (folder / "tokenizer.json").write_text("{}")
        return objects().put_folder(folder)

    return store


def files_of(policy: Reference) -> set[str]:
    """Return the names of a policy's files that are there."""

    def is_there(name: str) -> bool:
        try:
            return objects().get_file(policy, name) is not None
        except RemovedError:
            return False

    return {name for name in objects().get_json(policy) if is_there(name)}


WHOLE = {"model.safetensors", STATE, "tokenizer.json"}


def test_the_last_policy_the_measured_ones_and_the_state_of_the_best_stay(stored):
    start, *rounds = (stored(f"{number}") for number in range(6))
    policies = RoundPolicies()
    for number, (before, policy) in enumerate(zip([start, *rounds], rounds, strict=False), 1):
        policies.add(policy, made_from=before)
        if number in (2, 4):
            policies.measured(policy, best=rounds[1])
    one, two, three, four, five = map(files_of, rounds)
    assert one == three == {"tokenizer.json"}
    assert two == five == WHOLE, "the best one, and the last one"
    assert four == WHOLE - {STATE}
    assert files_of(start) == WHOLE, "a training removes only what it made"


def test_a_state_goes_once_another_policy_is_the_best(stored):
    first, second, third = (stored(name) for name in "abc")
    policies = RoundPolicies()
    policies.add(first, made_from=stored("start"))
    policies.measured(first, best=first)
    policies.add(second, made_from=first)
    assert files_of(first) == WHOLE
    policies.measured(second, best=second)
    policies.add(third, made_from=second)
    assert (files_of(first), files_of(second)) == (WHOLE - {STATE}, WHOLE)


def test_policies_that_may_still_play_stay(stored):
    policies, rounds = RoundPolicies(num_recent=2), [stored(name) for name in "abc"]
    for before, policy in zip([stored("start"), *rounds], rounds, strict=False):
        policies.add(policy, made_from=before)
    assert [files_of(one) for one in rounds] == [{"tokenizer.json"}, WHOLE - {STATE}, WHOLE]


def test_rounds_that_changed_nothing_remove_nothing(stored):
    start, policies = stored("start"), RoundPolicies()
    policies.add(start, made_from=start)
    policies.add(stored("a"), made_from=start)
    assert files_of(start) == WHOLE


def test_weights_that_a_round_left_as_they_were_stay_with_the_policy_that_it_began_from(stored):
    start, cloned, policies = stored("start"), stored("cloned"), RoundPolicies()
    for begun_from, name in ((start, "start"), (cloned, "cloned")):
        policies.add(stored(name, "another state"), made_from=begun_from)
    policies.add(stored("next"), made_from=cloned)
    assert (files_of(start), files_of(cloned)) == (WHOLE, WHOLE)


def test_what_an_earlier_run_wrote_is_not_removed(stored):
    earlier = stored("a")
    objects().begin_run()
    policies = RoundPolicies()
    policies.add(stored("a"), made_from=stored("start"))
    policies.add(stored("b"), made_from=earlier)
    assert files_of(earlier) == WHOLE


def test_what_was_removed_is_told_from_what_was_lost(stored, home):
    first, second = stored("a"), stored("b")
    objects().remove_files(first, [second])
    with pytest.raises(RemovedError, match="to save space"):
        get_optimizer_state(first)
    assert not objects().holds(first)
    assert objects().holds(first, or_removed=True)
    assert stored("a") == first
    assert objects().holds(first), "whatever is made again is there again"
    (home / "objects" / second.sha256[:2] / second.sha256).unlink()
    with pytest.raises(StorageError, match="is not in") as lost:
        get_optimizer_state(second)
    assert not isinstance(lost.value, RemovedError)
    assert not objects().holds(second, or_removed=True)
