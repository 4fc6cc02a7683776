"""Consolidation: the policy is cloned anew from demonstrations and its own wins, between rounds of RL."""

from flows.loop.early_experience import cloned
from flows.loop.lineage import Lineage, log
from infra.context import run_context
from schemas.recipes.learning import DreamRecipe, RealRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from schemas.runs import PolicyKey
from tasks.learning.collect_wins import collect_wins


def is_due(every: int, round: int) -> bool:
    """Return whether the policy is consolidated after a round, counted from 0."""
    return every > 0 and (round + 1) % every == 0


class Consolidation:
    """Expert iteration within a training: every so many rounds, all wins until then are cloned.

    RL alone takes too few updates on a round's groups to turn their wins into skill on other tasks.

    Differs: the paper trains by RL alone.
    """

    def __init__(self, recipe: Recipe, made: Lineage, trained: PolicyKey, asked: DreamRecipe | RealRecipe) -> None:
        """Create it without episodes.

        Args:
            recipe: Recipe of the run.
            made: Lineage of the run; wins, and real steps of replays, are added.
            trained: Policy that is trained, for which these steps count.
            asked: Section that says how often the policy is consolidated, and in how many epochs.
        """
        self._recipe, self._made, self._trained, self._asked = recipe, made, trained, asked
        self._played: list[Reference] = []

    def after(
        self, round: int, groups: list[Reference], policy: Reference, reference: Reference
    ) -> tuple[Reference, Reference]:
        """Return the policy to continue with, and the reference policy of its losses.

        Args:
            round: Number of the round that ended, counted from 0.
            groups: Groups of the round.
            policy: Policy after the round.
            reference: Reference policy in the round.
        """
        self._played += groups
        if not is_due(self._asked.consolidate_every, round):
            return policy, reference
        with run_context().display.one_line("consolidate") as conclude:
            anew = self._cloned() if self._found_wins(round) else reference
            if anew.sha256 == reference.sha256:  # nothing new to clone: training continues as it was
                conclude("no new win")
                return policy, reference
            conclude(f"{anew.notes['num_demonstrations']:,} demonstrations and wins")
        return anew, anew

    def _found_wins(self, round: int) -> bool:
        """Collect the wins since the last consolidation; return whether there are new ones."""
        artifacts, environment = self._made.artifacts, self._recipe.environment
        earlier = [artifacts.wins] if "wins" in artifacts else []
        trust_dreams = self._recipe.dream.consolidated_wins == "dreamt"
        wins = collect_wins(earlier, [*artifacts.experience[1:], *self._played], environment, trust_dreams)
        self._played = []
        artifacts.wins = wins
        steps = self._made.real_interactions
        steps[self._trained] = steps.get(self._trained, 0) + int(wins.notes["num_real_steps"])
        log("consolidation", {f"wins_{name}": value for name, value in wins.notes.items()}, round + 1)
        return wins.notes["num_episodes"] > 0 and all(one.sha256 != wins.sha256 for one in earlier)

    def _cloned(self) -> Reference:
        """Return a policy cloned from demonstrations and wins; annotated logs come first in experience."""
        artifacts = self._made.artifacts
        recipe = _with_epochs(self._recipe, self._asked.consolidation_epochs)
        return cloned(recipe, self._made, artifacts.experience[:1], [artifacts.wins])


def _with_epochs(recipe: Recipe, epochs: float) -> Recipe:
    """Return the recipe with this number of epochs of cloning; 0: its own."""
    if not epochs:
        return recipe
    sft = recipe.start.sft.model_copy(update={"epochs": epochs})
    return recipe.model_copy(update={"start": recipe.start.model_copy(update={"sft": sft})})
