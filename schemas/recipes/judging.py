"""Judging of a recipe: evaluation and the gate."""

from typing import Literal, Self

from pydantic import Field

from schemas.recipes.section import Section, Share


class EvaluationRecipe(Section):
    """Evaluation of a policy, on valid tasks during training and on test tasks at the end."""

    panel: Literal["fresh", "pinned"] = "fresh"
    """fresh: test tasks that no earlier judgement used, if the environment can create them; else its whole set, whose
    uses are counted. pinned: the first test tasks, to compare experiments."""
    max_dreamt_tasks: int = Field(default=400, ge=1)
    """Maximum number of tasks that are also dreamt; all tasks are played for real."""
    max_failed_share: Share = 0.02
    """Maximum share of episodes without an outcome because the real environment failed repeatedly."""

    @property
    def without_dreams(self) -> Self:
        """This section without dreams, for real evaluation only."""
        return self.model_copy(update={"max_dreamt_tasks": 0})

    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature, for real and in the dream; 0 is greedy. verl-agent, whose workflow the paper follows,
    evaluates at 0.4, so that a policy is not stuck repeating a refused action."""
    episodes_per_task: int = Field(default=1, ge=1)
    """Episodes per task; their mean is the task's success. More episodes help for a sampled policy: half of the
    difference between two policies on a task may be luck. At temperature 0 all would be the same."""
    num_shards: int = Field(default=1, ge=1)
    """Number of parts that the episodes are split into, each with its own seed; at temperature 0 the outcomes are the
    same. They are played in sequence, or side by side: on a CPU in as many processes as there are threads, or on the
    workers of a Ray cluster."""


class GateRecipe(Section):
    """Requirements for promotion."""

    margin: float = Field(default=0.0, ge=0, le=1)
    """The lower bound of the paired gain over the starting policy must be above -margin. 1 disables this check and the
    check of the gain over the champion."""
    false_promotion_rate: float = Field(default=0.0035, gt=0, le=1)
    """Probability per judgement that a candidate equal to the champion replaces it by luck. At 0.0035, one of ten
    series of thirty nights has a false promotion."""
    family_margin: float = Field(default=0.05, ge=0, le=1)
    """Maximum loss of a family of tasks beyond chance, corrected for the number of families."""
    family_margins: dict[str, Share] = Field(default={})
    """Margins of single families by name, instead of family_margin."""
    min_outcome_agreement: float = Field(default=0.9, ge=0, le=1)
    """Minimum agreement of dreamt outcomes with their real replay; 0 disables this check and the check of kappa."""
    min_outcome_kappa: float = Field(default=0.4, ge=0, le=1)
    """Minimum of that agreement beyond chance (Cohen's kappa). A candidate is refused only if the whole 95% interval
    lies below, so too few episodes, or too few lost ones, refuse nothing."""
    max_dream_real_gap: float = Field(default=0.1, ge=0, le=1)
    """Maximum absolute difference of dream and real success of the same policy on the same tasks."""
    needs_approval: bool = False
    """Require a person's approval to promote a candidate that passed."""

    def margin_of(self, family: str) -> float:
        """Return the maximum loss allowed for a family."""
        return self.family_margins.get(family, self.family_margin)
