"""Step-level advantages of GiGPO (arXiv 2505.10978), on top of group-relative ones."""

from collections import defaultdict
from collections.abc import Sequence

from pydantic import Field

from models.methods.advantages import Advantage
from models.methods.advantages.grpo import group_advantages
from schemas.recipes.section import Section
from schemas.records import Trajectory


class GigpoOptions(Section):
    """Options of GiGPO."""

    discount: float = Field(default=0.95, gt=0, le=1)
    """gamma: factor on a reward for each turn between an action and it."""
    step_weight: float = Field(default=1.0, ge=0)
    """Weight of the step advantage beside the episode's."""
    normalise_std: bool = False
    """Divide both advantages by the standard deviation of what they are compared with."""


class Gigpo(Advantage[GigpoOptions]):
    """Episode advantage plus that of each action among all that the group took in the same state.

    Source: arXiv 2505.10978, Eq. 3 to 8; anchors are equal states, and a state met once has no step advantage.
    Differs: the published code averages the episode baseline over steps, so that a long episode counts more; this one
        averages over episodes, as the paper says.
    """

    Options = GigpoOptions

    def advantages(self, group: Sequence[Trajectory], rewards: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the advantage of each turn; a group whose returns are equal may still have some."""
        episodes = self._relative([sum(turns) for turns in rewards])
        returns = [discounted(turns, self.options.discount) for turns in rewards]
        steps = [[0.0] * len(turns) for turns in rewards]
        for places in anchors(group).values():
            relative = self._relative([returns[episode][turn] for episode, turn in places])
            for (episode, turn), advantage in zip(places, relative, strict=True):
                steps[episode][turn] = advantage
        weight = self.options.step_weight
        return [[whole + weight * one for one in turns] for whole, turns in zip(episodes, steps, strict=True)]

    def _relative(self, values: Sequence[float]) -> list[float]:
        return group_advantages(values, normalise_std=self.options.normalise_std)


def discounted(rewards: Sequence[float], discount: float) -> list[float]:
    """Return the discounted sum of rewards from each turn on."""
    found, after = [0.0] * len(rewards), 0.0
    for turn in reversed(range(len(rewards))):
        found[turn] = after = rewards[turn] + discount * after
    return found


def anchors(group: Sequence[Trajectory]) -> dict[str, list[tuple[int, int]]]:
    """Return the episodes and turns in which each state was met, for states met more than once."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for episode, trajectory in enumerate(group):
        for number, turn in enumerate(trajectory.turns):
            places[turn.state].append((episode, number))
    return {state: found for state, found in places.items() if len(found) > 1}
