"""Judging in the dream: a model that reviews its own predictions, and what states are worth, as far as a recipe asks."""

from flows.loop.lineage import Lineage, log
from models.methods.advantages import Advantage
from models.methods.judges import TaughtJudge, open_judge
from models.methods.method import open_method
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.judging.improve_judge import improve_judge
from tasks.judging.judge_states import judge_states, teach_step_judge
from tasks.judging.teach_judge import teach_judge
from tasks.playing.value_states import value_states


def taught(recipe: Recipe, model: Reference, experience: list[Reference]) -> Reference:
    """Return an experience model that has learnt to judge; the same one if the recipe's judge needs no teaching.

    A model at an endpoint is not trained, and judges by its instructions.
    """
    judge = open_judge(recipe.experience.judge)
    if not isinstance(judge, TaughtJudge) or recipe.experience.endpoint_model:
        return model
    first = improved = teach_judge(model, experience, recipe.play, recipe.training)
    for round in range(judge.options.num_rounds):
        made = improve_judge(improved, first, experience, recipe.play, judge.updates, recipe.training, round)
        log("judge", made["metrics"], round)
        improved = made["model"]
    return improved


class StateValues:
    """Values of states in each round: dreamt, or said by a judge that learnt from dreamt ones."""

    def __init__(self, recipe: Recipe, made: Lineage) -> None:
        """Begin without values."""
        self._recipe, self._made = recipe, made
        self._advantage = open_method(Advantage, recipe.rl.advantage)
        self._dreamt: list[Reference] = []
        self._taught: Reference | None = None

    def of(self, policy: Reference, groups: list[Reference], round: int) -> Reference | None:
        """Return the values of the states that the advantage asks for; None if it asks for none.

        Args:
            policy: Policy that played the groups.
            groups: Groups of the round.
            round: Number of the round, counted from 0.
        """
        if not self._advantage.needs_values:
            return None
        judge = self._judge_in(round)
        recipe = self._recipe
        values = (
            judge_states(groups, judge, recipe.rl, recipe.training) if judge else self._dream(policy, groups, round)
        )
        log("dream training", values.notes, round)
        return values

    def _dream(self, policy: Reference, groups: list[Reference], round: int) -> Reference:
        recipe, artifacts = self._recipe, self._made.artifacts
        model, experience = artifacts.experience_model, artifacts.experience
        self._dreamt.append(value_states(groups, policy, model, experience, recipe.play, recipe.rl, round))
        return self._dreamt[-1]

    def _judge_in(self, round: int) -> Reference | None:
        """Return the judge of a round's states; None in the first rounds, and as long as there is nothing to learn."""
        recipe, artifacts, num_dreamt = self._recipe, self._made.artifacts, self._advantage.dreamt_rounds
        if num_dreamt is None or round < num_dreamt:
            return None
        if self._taught is None:
            model = artifacts.experience_model
            self._taught = teach_step_judge(model, self._dreamt, recipe.rl, recipe.training, recipe.seed)
        if self._taught:
            artifacts.step_judge = self._taught
        return self._taught
