"""Token streams to train on, in groups that are computed together because they share their beginnings."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Literal

from schemas.records import Tokens

Unit = Literal["token", "stream", "pair", "group"]


def answered(prompt: Sequence[int], answer: Sequence[int], logprobs: Sequence[float]) -> Tokens:
    """Return a prompt and the sampled tokens after it, with their log-probabilities, as one stream."""
    is_action = [False] * len(prompt) + [True] * len(answer)
    return Tokens([*prompt, *answer], is_action, [*[0.0] * len(prompt), *logprobs])


@dataclass(frozen=True, slots=True)
class TrainingStream:
    """Token stream of an episode, or of one of its turns, with what is trained on its tokens.

    Shapes: T tokens.
    """

    tokens: Tokens
    advantages: list[float]
    """Advantage of each action in the stream, an action being a run of sampled tokens."""
    episode: int = 0
    """Number of the episode in its group."""
    ce_weights: list[float] = field(default_factory=list)
    """Weight of the cross-entropy of each token, [T]; empty for none."""
    ref_kl_weights: list[float] = field(default_factory=list)
    """Weight of the KL to the reference policy at each token, [T]; empty for none."""

    @property
    def is_trained(self) -> list[bool]:
        """Whether a token's log-probability is computed, [T]: sampled tokens, and those with a weight."""
        weights = [one for one in (self.ce_weights, self.ref_kl_weights) if one]
        if not weights:
            return self.tokens.is_action
        return [any((action, *of)) for action, *of in zip(self.tokens.is_action, *weights, strict=True)]

    @property
    def acts(self) -> bool:
        """Whether it has actions."""
        return bool(self.advantages)

    @property
    def action_lengths(self) -> list[int]:
        """Number of tokens of each action in the stream."""
        return [len(list(run)) for is_action, run in groupby(self.tokens.is_action) if is_action]

    def at_tokens(self, values: Sequence[float]) -> list[float]:
        """Return a value of each action at all of its tokens, and 0 at the others, [T]."""
        run, before, found = -1, False, list[float]()
        for is_action in self.tokens.is_action:
            run += is_action and not before
            before = is_action
            found.append(values[run] if is_action else 0.0)
        return found


@dataclass(frozen=True)
class TrainingGroup:
    """Streams of one group's episodes, or of a pair of them."""

    streams: list[TrainingStream]
    returns: list[float] = field(default_factory=list)
    """Return of each episode of the group."""
    group_id: str = ""

    @cached_property
    def duplicate_of(self) -> list[int]:
        """Index of each stream's equal among the distinct ones, whose log-probabilities are computed once."""
        numbers: dict[tuple[tuple[int, ...], tuple[bool, ...]], int] = {}
        keys = ((tuple(one.tokens.ids), tuple(one.is_trained)) for one in self.streams)
        return [numbers.setdefault(key, len(numbers)) for key in keys]

    @cached_property
    def distinct(self) -> list[TrainingStream]:
        """Streams without duplicates: episodes of a task meet the same moments and act alike."""
        first = dict(zip(reversed(self.duplicate_of), reversed(self.streams), strict=True))
        return [first[number] for number in range(len(first))]

    @cached_property
    def prefix_length(self) -> int:
        """Number of tokens that all streams share before the first trained token."""
        limit = min(one.is_trained.index(True) for one in self.distinct)
        ids = [one.tokens.ids for one in self.distinct]
        return next((i for i in range(limit) if any(one[i] != ids[0][i] for one in ids)), limit)

    @property
    def acts(self) -> bool:
        """Whether a loss has actions to work on; an auxiliary group has none."""
        return any(stream.acts for stream in self.streams)

    @property
    def num_actions(self) -> int:
        """Number of sampled tokens in the group."""
        return sum(sum(one.tokens.is_action) for one in self.streams)

    @property
    def padded_tokens(self) -> int:
        """Number of tokens if all distinct streams were as long as the longest: their size where they attend."""
        return len(self.distinct) * max(len(one.tokens.ids) for one in self.distinct)


def micro_batches(groups: Sequence[TrainingGroup], max_tokens: int) -> Iterator[list[TrainingGroup]]:
    """Yield batches of groups of similar length, with at most max_tokens as padded, or a single group."""
    batch: list[TrainingGroup] = []
    for group in sorted(groups, key=lambda group: group.padded_tokens):
        if batch and sum(one.padded_tokens for one in batch) + group.padded_tokens > max_tokens:
            yield batch
            batch = []
        batch.append(group)
    if batch:
        yield batch


def num_units(groups: Sequence[TrainingGroup], unit: Unit) -> int:
    """Return the number of sampled tokens, streams, pairs or groups; auxiliary ones do not count."""
    acting = [group for group in groups if group.acts]
    if unit == "token":
        return sum(group.num_actions for group in acting)
    return sum(stream.acts for group in acting for stream in group.streams) if unit == "stream" else len(acting)


def pairs(groups: Sequence[TrainingGroup], draw: int) -> list[TrainingGroup]:
    """Return a pair of each group: an episode above the mean return, then one below; groups without either are left out.

    Auxiliary groups stay as they are.

    Args:
        groups: Groups with the returns of their episodes.
        draw: Number that decides which episodes are drawn, together with the group's id.
    """
    found = [_pair(group, draw) if group.acts else group for group in groups]
    return [pair for pair in found if pair]


def _pair(group: TrainingGroup, draw: int) -> TrainingGroup | None:
    rng, mean = random.Random(f"{draw}/{group.group_id}"), sum(group.returns) / len(group.returns)
    there = sorted({stream.episode for stream in group.streams})
    better = [one for one in there if group.returns[one] > mean]
    worse = [one for one in there if group.returns[one] < mean]
    if not better or not worse:
        return None
    chosen = rng.choice(better), rng.choice(worse)
    streams = [
        replace(stream, episode=number)
        for number, episode in enumerate(chosen)
        for stream in group.streams
        if stream.episode == episode
    ]
    return TrainingGroup(streams, [group.returns[one] for one in chosen], group.group_id)
