"""Groups of episodes as the trainer sees them: token streams with advantages, whole groups only.

Shapes: N action tokens of all groups, in the order of groups, streams and tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from models.methods.objective import GrpoOptions, group_advantages
from schemas.records import Tokens, Trajectory

_SAME_RETURN = 1e-9
"""Maximum difference of equal returns: sums of the same rewards may differ in their last bits."""


@dataclass(frozen=True)
class ScoredGroup:
    """Token streams of one task's episodes, each with the advantage of its episode."""

    tokens: list[Tokens]
    advantages: list[float]

    @cached_property
    def duplicate_of(self) -> list[int]:
        """Index of each stream's equal among the distinct ones, whose log-probabilities are computed once."""
        numbers: dict[tuple[tuple[int, ...], tuple[bool, ...]], int] = {}
        return [numbers.setdefault((tuple(one.ids), tuple(one.is_action)), len(numbers)) for one in self.tokens]

    @cached_property
    def distinct(self) -> list[Tokens]:
        """Streams without duplicates: episodes of a task meet the same moments and act alike."""
        first = dict(zip(reversed(self.duplicate_of), reversed(self.tokens), strict=True))
        return [first[number] for number in range(len(first))]

    @cached_property
    def prefix_length(self) -> int:
        """Number of tokens that all streams share before the first action."""
        limit = min(one.is_action.index(True) for one in self.distinct)
        first = self.tokens[0].ids
        return next((i for i in range(limit) if any(one.ids[i] != first[i] for one in self.distinct)), limit)

    @property
    def num_actions(self) -> int:
        """Number of action tokens in the group."""
        return sum(sum(one.is_action) for one in self.tokens)

    @property
    def padded_tokens(self) -> int:
        """Number of tokens if all distinct streams were as long as the longest: their size where they attend."""
        return len(self.distinct) * max(len(one.ids) for one in self.distinct)


def informative_groups(
    groups: Sequence[Sequence[Trajectory]], options: GrpoOptions
) -> tuple[list[ScoredGroup], dict[str, int]]:
    """Return groups that teach something, and the number of others by reason.

    A failed episode has no reward, and the rest of its group is no fair sample, so a group that is not whole
    never trains. One whose returns are all equal has no advantage; it is counted as all succeeded, all failed or, if
    only some succeeded, all alike. One whose episodes are all masked has nothing to train on.
    """
    scored: list[ScoredGroup] = []
    counts = {"broken": 0, "all_succeeded": 0, "all_failed": 0}
    for group in groups:
        if reason := _left_out(group, options):
            counts[reason] = counts.get(reason, 0) + 1
        else:
            scored.append(_scored(group, [trajectory.reward for trajectory in group], options))
    return scored, counts


def _left_out(group: Sequence[Trajectory], options: GrpoOptions) -> str:
    """Return the reason why a group teaches nothing; empty if it does teach."""
    if any(trajectory.failure for trajectory in group):
        return "broken"
    rewards = [trajectory.reward for trajectory in group]
    if max(rewards) - min(rewards) <= _SAME_RETURN:
        num_successes = sum(trajectory.success for trajectory in group)
        return {len(group): "all_succeeded", 0: "all_failed"}.get(num_successes, "all_alike")
    return "" if any(_is_trained_on(trajectory, options) for trajectory in group) else "all_masked"


def _is_trained_on(trajectory: Trajectory, options: GrpoOptions) -> bool:
    return not (options.mask_truncated and trajectory.truncated)


def _scored(group: Sequence[Trajectory], rewards: list[float], options: GrpoOptions) -> ScoredGroup:
    advantages = group_advantages(rewards, normalise_std=options.normalise_std, leave_one_out=options.leave_one_out)
    advantages = [a if a > 0 else a * options.negative_scale for a in advantages]
    kept = [(t, a) for t, a in zip(group, advantages, strict=True) if _is_trained_on(t, options)]
    streams = [(stream, a) for t, a in kept for stream in t.tokens]
    return ScoredGroup([stream for stream, _ in streams], [a for _, a in streams])


def sampled_logprobs(groups: Sequence[ScoredGroup]) -> Tensor:
    """Return log-probabilities of all action tokens as the engine sampled them, [N]."""
    streams = (one for g in groups for one in g.tokens)
    return torch.tensor([p for one in streams for p, act in zip(one.logprobs, one.is_action, strict=True) if act])


def stream_lengths(groups: Sequence[ScoredGroup]) -> list[int]:
    """Return the number of action tokens of each stream; they add up to N."""
    return [sum(one.is_action) for g in groups for one in g.tokens]


def token_advantages(groups: Sequence[ScoredGroup]) -> Tensor:
    """Return each episode's advantage at each of its action tokens, [N]."""
    return torch.tensor(
        [a for g in groups for one, a in zip(g.tokens, g.advantages, strict=True) for action in one.is_action if action]
    )


def micro_batches(groups: Sequence[ScoredGroup], max_tokens: int) -> Iterator[list[ScoredGroup]]:
    """Yield batches of groups of similar length, with at most max_tokens as padded, or a single group."""
    batch: list[ScoredGroup] = []
    for group in sorted(groups, key=lambda group: group.padded_tokens):
        if batch and sum(one.padded_tokens for one in batch) + group.padded_tokens > max_tokens:
            yield batch
            batch = []
        batch.append(group)
    if batch:
        yield batch
