"""Self-imitation: what is replayed and how much it weighs by hand, and what it does to a round's groups."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from models.methods.replays.self_imitation import SelfImitation, SelfImitationOptions
from models.methods.scoring import interleaved
from models.methods.streams import TrainingGroup
from schemas.errors import RecipeError
from schemas.records import Failure
from tests.training import scoring
from tests.unit.test_grpo import episode

RETURNS = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30)


def replay(**options) -> SelfImitation:
    return SelfImitation(SelfImitationOptions(**{"warmup_rounds": 0, **options}))


def test_advantages_by_hand():
    assert replay().advantages([0, 0, 1], [1, 1], 0) == [0, 0, 0], "the median is 1: wins are nothing special"
    assert replay().advantages([0, 0, 1], [0], 0) == [0, 0, 1]
    assert replay(baseline_episodes=2).advantages([0, 1], [1, 0], 0) == [0, 0.5], "the median of the last two is 0.5"
    assert replay(max_episodes=1).advantages([1, 0, 1, 0], [0, 0], 0) == [0, 0, 1, 0], "the latest counts"


def test_weights_by_hand():
    method = replay(warmup_rounds=8)
    assert [method.weight(round) for round in (0, 2, 4, 8, 20)] == pytest.approx([0, 0.1464466, 0.5, 1, 1])
    assert method.advantages([0, 0, 1], [0], 4) == pytest.approx([0, 0, 0.5])


@given(RETURNS, RETURNS, st.integers(0, 20))
def test_only_wins_are_replayed_and_none_where_most_episodes_win(earlier, present, round):
    found = replay(warmup_rounds=10).advantages(earlier, present, round)
    assert all(0 <= one <= worth for one, worth in zip(found, earlier, strict=True))
    if sum([*earlier, *present]) > len([*earlier, *present]) / 2:
        assert not any(found)


def test_won_episodes_come_back_as_groups_of_their_own_but_never_from_a_broken_group():
    methods = replace(scoring(), replay=replay())
    lost, won = episode(0, group="old"), episode(1, group="old")
    broken = [episode(1, group="broken"), episode(0, Failure.UNPARSABLE, group="broken")]
    [group] = methods.replayed_groups([lost, won, *broken], [episode(0, group="new")] * 3, round=1)
    assert [stream.tokens for stream in group.streams] == list(won.tokens)
    assert group.streams[0].advantages == [1.0]
    assert methods.replayed_groups([lost, won], [episode(0, Failure.UNPARSABLE)], round=1) == []


def test_replayed_groups_are_mixed_evenly_among_fresh_ones():
    fresh, replayed = ([TrainingGroup([], group_id=f"{kind}{i}") for i in range(n)] for kind, n in (("f", 4), ("r", 2)))
    assert [one.group_id for one in interleaved(fresh, replayed)] == ["f0", "r0", "f1", "f2", "r1", "f3"]
    assert interleaved(fresh, []) == fresh


def test_it_does_not_go_with_a_critic():
    changes = ("rl.replay.name=self-imitation", "rl.loss.name=ppo", "rl.advantage.name=critic")
    with pytest.raises(RecipeError, match=r"rl\.replay 'self-imitation' does not go with rl\.advantage 'critic'"):
        require_methods(load_recipe("textworld-tiny", changes))
    require_methods(load_recipe("textworld-tiny", changes[:1]))
