"""Seeds and shards of a round's groups: nothing is drawn with a seed twice, and every item is in one shard."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tasks.playing.groups import edges_of_shards, seed_of_attempt, seed_of_round, seed_of_shard


def test_no_two_draws_of_a_run_share_a_seed():
    drawn = [
        seed_of_attempt(seed_of_shard(seed_of_round(seed, round, part), shard), attempt)
        for seed, round, part, shard, attempt in product(range(3), range(50), range(4), range(8), range(3))
    ]
    assert len(set(drawn)) == len(drawn)


@given(st.integers(0, 1_000), st.integers(1, 20))
def test_shards_are_neighbours_of_equal_size_and_leave_nothing_out(num_items, num_shards):
    edges = edges_of_shards(num_items, num_shards)
    assert [i for first, end in edges for i in range(first, end)] == list(range(num_items))
    sizes = [end - first for first, end in edges]
    assert len(sizes) == num_shards
    assert max(sizes) - min(sizes) <= 1
