"""From the trajectories of a round to groups to train on: rewards, advantages, and the groups that teach nothing."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from models.methods.advantages import Advantage, StateValues
from models.methods.auxiliaries import Auxiliary
from models.methods.auxiliaries.none import NoAuxiliary
from models.methods.groupings import Grouping
from models.methods.method import NoOptions, open_method
from models.methods.replays import Replay
from models.methods.replays.none import NoReplay
from models.methods.rewards import Reward
from models.methods.streams import TrainingGroup, TrainingStream
from models.text.policies.policy_format import is_malformed
from models.text.prompts import PromptFormat
from schemas.ports import Progress
from schemas.recipes.learning import RlRecipe
from schemas.records import Tokens, Trajectory

Demonstrate = Callable[[Sequence[Trajectory]], Sequence[Sequence[Sequence[float]]]]
"""Log-probabilities of sampled tokens after a demonstration, by trajectory and stream."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """Methods that turn episodes into advantages."""

    grouping: Grouping
    reward: Reward
    advantage: Advantage
    mask_truncated: bool = False
    """Leave truncated episodes out of the loss; their group is still compared with them."""
    format_penalty: float = 0.0
    """Subtracted from the reward of each turn whose answer has no action."""
    replay: Replay = field(default_factory=lambda: NoReplay(NoOptions()))
    auxiliary: Auxiliary = field(default_factory=lambda: NoAuxiliary(NoOptions()))

    @classmethod
    def of(cls, recipe: RlRecipe, progress: Progress | None = None, values: StateValues | None = None) -> "Scoring":
        """Open the methods that a recipe names.

        Args:
            recipe: Section that names them.
            progress: Reader of the environment's progress, if its states tell.
            values: Values of the states that the advantage asked for.
        """
        reward, advantage = open_method(Reward, recipe.reward), open_method(Advantage, recipe.advantage)
        reward.progress = advantage.progress = progress
        advantage.values = values or {}
        return cls(
            open_method(Grouping, recipe.grouping),
            reward,
            advantage,
            recipe.mask_truncated,
            recipe.format_penalty,
            open_method(Replay, recipe.replay),
            open_method(Auxiliary, recipe.auxiliary),
        )

    def informative_groups(self, trajectories: Sequence[Trajectory]) -> tuple[list[TrainingGroup], dict[str, int]]:
        """Return groups that teach something, and the number of others by reason.

        A failed episode has no reward, and the rest of its group is no fair sample, so a group that is not whole never
        trains, nor one with a reward or an advantage that is not finite: it would undo the whole update. One without
        advantages is counted as all succeeded, all failed or, if only some succeeded, all alike. One whose episodes are all
        masked has nothing to train on.
        """
        scored: list[_Scored] = []
        counts = {"broken": 0, "all_succeeded": 0, "all_failed": 0}
        for group in self.grouping.groups(trajectories):
            found = self._scored(group)
            if isinstance(found, _Scored):
                scored.append(found)
            else:
                counts[found] = counts.get(found, 0) + 1
        final = self.advantage.over_round([one.advantages for one in scored])
        return [self._to_train_on(one, advantages) for one, advantages in zip(scored, final, strict=True)], counts

    def auxiliary_groups(
        self,
        trajectories: Sequence[Trajectory],
        format: PromptFormat,
        demonstrate: Demonstrate | None = None,
    ) -> list[TrainingGroup]:
        """Return what else is learnt from the episodes that did not fail, group by group.

        Args:
            trajectories: Episodes of a round.
            format: Format of the policy's prompts.
            demonstrate: Log-probabilities after a demonstration, for an auxiliary that asks for them.
        """
        found: list[TrainingGroup] = []
        for group in self.grouping.groups(trajectories):
            whole = [one for one in group if not one.failure]
            given = [(one,) for one in demonstrate(whole)] if demonstrate else [()] * len(whole)
            streams = [
                stream
                for one, logprobs in zip(whole, given, strict=True)
                for stream in self.auxiliary.streams(one, format, *logprobs)
            ]
            found += [TrainingGroup(streams)] if streams else []
        return found

    def replayed_groups(
        self, earlier: Sequence[Trajectory], present: Sequence[Trajectory], round: int
    ) -> list[TrainingGroup]:
        """Return the episodes of earlier rounds that are trained on again, each as a group of its own.

        Args:
            earlier: Trajectories of earlier rounds, oldest first.
            present: Trajectories of this round.
            round: Number of the round, counted from 0.
        """
        before, now = self._returns(earlier), self._returns(present)
        if not before or not now:
            return []
        advantages = self.replay.advantages([one for _, one in before], [one for _, one in now], round)
        return [
            TrainingGroup(
                _streams(trajectory.tokens, [advantage] * len(trajectory.turns), 0), [worth], f"replay/{place}"
            )
            for place, ((trajectory, worth), advantage) in enumerate(zip(before, advantages, strict=True))
            if advantage and not self._is_masked(trajectory)
        ]

    def _returns(self, trajectories: Sequence[Trajectory]) -> list[tuple[Trajectory, float]]:
        """Return the episodes of whole groups with their returns; a failed episode has none."""
        groups = [one for one in self.grouping.groups(trajectories) if not any(episode.failure for episode in one)]
        rewarded = [(group, self._rewards(group)) for group in groups]
        return [
            (trajectory, sum(turns))
            for group, rewards in rewarded
            if _are_finite(rewards)
            for trajectory, turns in zip(group, rewards, strict=True)
        ]

    def _rewards(self, group: Sequence[Trajectory]) -> list[list[float]]:
        """Return the reward of each turn of each episode, less the penalties."""
        return [
            [
                reward - self.format_penalty * is_malformed(turn.action)
                for reward, turn in zip(turns, one.turns, strict=True)
            ]
            for one, turns in zip(group, self.reward.rewards(group), strict=True)
        ]

    def _scored(self, group: Sequence[Trajectory]) -> "_Scored | str":
        """Return the group with its rewards and advantages, or the reason why it teaches nothing."""
        if any(trajectory.failure for trajectory in group):
            return "broken"
        rewards = self._rewards(group)
        if not _are_finite(rewards) or not _are_finite(advantages := self.advantage.advantages(group, rewards)):
            return "broken"
        if self.advantage.needs_differences and not any(one for turns in advantages for one in turns):
            num_successes = sum(trajectory.success for trajectory in group)
            return {len(group): "all_succeeded", 0: "all_failed"}.get(num_successes, "all_alike")
        if all(map(self._is_masked, group)):
            return "all_masked"
        return _Scored(group, [sum(turns) for turns in rewards], advantages)

    def _to_train_on(self, scored: "_Scored", advantages: Sequence[list[float]]) -> TrainingGroup:
        streams = [
            stream
            for number, (trajectory, turns) in enumerate(zip(scored.group, advantages, strict=True))
            if not self._is_masked(trajectory)
            for stream in _streams(trajectory.tokens, turns, number)
        ]
        return TrainingGroup(streams, scored.returns, scored.group[0].group_id)

    def _is_masked(self, trajectory: Trajectory) -> bool:
        return self.mask_truncated and trajectory.truncated


def _are_finite(numbers: Sequence[Sequence[float]]) -> bool:
    return all(math.isfinite(one) for turns in numbers for one in turns)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Group that teaches something."""

    group: Sequence[Trajectory]
    returns: list[float]
    advantages: list[list[float]]


def _streams(tokens: Sequence[Tokens], advantages: list[float], episode: int) -> list[TrainingStream]:
    """Return an episode's streams: one with the actions of all turns, or one for each turn."""
    if len(tokens) == 1:
        return [TrainingStream(tokens[0], advantages, episode)]
    return [TrainingStream(stream, [one], episode) for stream, one in zip(tokens, advantages, strict=True)]


def interleaved(fresh: Sequence[TrainingGroup], replayed: Sequence[TrainingGroup]) -> list[TrainingGroup]:
    """Return fresh and replayed groups mixed evenly, each in its order, so that every update of a round has of both."""
    places = [((place + 0.5) / len(some), one) for some in (fresh, replayed) for place, one in enumerate(some)]
    return [one for _, one in sorted(places, key=lambda placed: placed[0])]
