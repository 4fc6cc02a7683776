"""Champion after a sequence of decisions."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.ledger import Decision, Entry, History
from schemas.records import Reference


def policy(name: str) -> Reference:
    return Reference(f"objects/{name}", name * 64, "model")


def judged(name: str, *, passed: bool) -> Entry:
    return Entry(Decision.JUDGED, policy(name), "g" * 64, passed)


def promoted(name: str) -> Entry:
    return Entry(Decision.PROMOTED, policy(name), "g" * 64, passed=True)


BACK = Entry(Decision.ROLLED_BACK, None)


def history(*entries: Entry) -> History:
    return History(entries)


def test_a_rollback_goes_back_to_the_one_before_and_two_go_back_two():
    past = (promoted("a"), promoted("b"), promoted("c"))
    assert history(*past).champion == policy("c")
    assert history(*past, BACK).champion == policy("b")
    assert history(*past, BACK, BACK).champion == policy("a")
    assert history(*past, BACK, BACK, BACK).champion is None
    assert history(*past, BACK, promoted("d"), BACK).champion == policy("b")


def test_a_rollback_to_an_earlier_one_withdraws_all_that_came_after_it():
    past = history(promoted("a"), promoted("b"), promoted("c"), Entry(Decision.ROLLED_BACK, policy("a")))
    assert past.standing == [policy("a")]
    assert past.withdrawn == {"b" * 64, "c" * 64}


def test_what_a_rollback_withdrew_stays_withdrawn_until_it_is_promoted_again():
    assert history(promoted("a"), promoted("b"), BACK).withdrawn == {"b" * 64}
    assert history(promoted("a"), promoted("b"), BACK, promoted("b")).withdrawn == set()


def test_challenger_and_candidate_are_the_last_judged_and_the_last_that_passed():
    past = history(judged("a", passed=True), promoted("a"), judged("b", passed=False))
    assert past.challenger == policy("b")
    assert past.real_env_candidate == policy("a")
    assert past.champion == policy("a")
    assert history().challenger is None


@given(st.lists(st.sampled_from("abc-")))
def test_promotions_and_rollbacks_are_a_stack(moves):
    entries, stack = [], []
    for move in moves:
        if move != "-":
            entries.append(promoted(move))
            stack.append(move)
        elif stack:
            entries.append(BACK)
            stack.pop()
    past = history(*entries)
    assert past.champion == (policy(stack[-1]) if stack else None)
    assert past.before_champion == (policy(stack[-2]) if len(stack) > 1 else None)
