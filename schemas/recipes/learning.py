"""Learning of a recipe: starting policy, curriculum, reinforcement learning in the dream and for real."""

from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.policies import PolicyName
from schemas.recipes.methods import (
    AdvantageRecipe,
    AuxiliaryRecipe,
    CurriculumMethodRecipe,
    GeneratorRecipe,
    GroupingRecipe,
    LossRecipe,
    ReplayRecipe,
    RewardRecipe,
)
from schemas.recipes.networks import SftRecipe
from schemas.recipes.section import Section


class EarlyExperienceRecipe(Section):
    """Early Experience (arXiv 2510.08558): other actions than the demonstrated ones, and what they lead to.

    It needs no rewards. The updates that it takes are taken from the cloning.
    """

    alternatives: int = Field(default=0, ge=0)
    """K: maximum number of other actions tried in each state of the cloned demonstrations; 0: none. The paper has 8 for
    the world model, and finds 2 to 4 best for reflections."""
    proposed_by: Literal["environment", "policy"] = "environment"
    """environment: its own lists of actions, half of them accepted and half likely to be refused. policy: the policy
    that is cloned without early experience, sampled at temperature 1."""
    executed_in: Literal["real", "dream"] = "real"
    """real: each action is taken for real, after the demonstration up to there; these steps count as real training.
    dream: an experience model that was fitted to the logs predicts its step."""
    world_model: bool = True
    """Implicit world modelling: the backbone learns for one epoch what the actions lead to, before it is cloned."""
    reflections: bool = False
    """Self-reflection: the policy learns to write why the demonstrated action is better, and that action."""


class PreferencesRecipe(Section):
    """Preferences between logged episodes of one task with different returns, learnt after cloning: offline DPO."""

    pairs_per_task: int = Field(default=0, ge=0)
    """Number of pairs drawn of each task that has better and worse episodes; 0: no preferences are learnt."""
    pairs_per_update: int = Field(default=16, ge=1)
    """Number of pairs per optimiser step."""
    learning_rate: float = Field(default=5e-5, gt=0)
    """Learning rate after warm-up."""
    beta: float = Field(default=0.1, gt=0)
    """Scale of the log-ratios to the cloned policy: the larger, the closer the policy stays to it."""

    @property
    def updates(self) -> "RlRecipe":
        """Settings of the updates, apart from their number."""
        loss = LossRecipe.model_validate({"name": "dpo", "beta": self.beta})
        return RlRecipe(loss=loss, learning_rate=self.learning_rate, temperature=1.0)


class StartRecipe(Section):
    """The starting policy: cloned from logged successes, or an existing policy."""

    from_: Literal["demonstrations", "base", "champion", "run"] = Field(default="demonstrations", alias="from")
    """demonstrations: the backbone, cloned from logged successes. base: the backbone as is. champion: the champion at
    the start of the run, or demonstrations if there is none yet. run: a stored policy of an earlier run."""
    run: str = ""
    """Earlier run, by its id or the start of it, whose policy is the start if `from` says run."""
    policy: PolicyName | None = None
    """Policy of that run; None: the promoted one, or else the dream-trained one."""
    num_demonstrations: int | None = Field(default=None, ge=1)
    """Maximum number of tasks whose logs are cloned; the shortest success of each is used. None: all logged tasks."""
    renamed_copies: int = Field(default=3, ge=0)
    """Extra copies of each demonstration with entity renaming, so that the policy learns to copy names."""
    sft: SftRecipe = SftRecipe(epochs=5, learning_rate=5e-4, tokens_per_update=2_048)
    early_experience: EarlyExperienceRecipe = EarlyExperienceRecipe()
    preferences: PreferencesRecipe = PreferencesRecipe()

    @model_validator(mode="after")
    def _a_run_is_named_where_it_is_read(self) -> Self:
        if (self.from_ == "run") != bool(self.run) or (self.policy and not self.run):
            raise ValueError(
                'start.from = "run" goes with start.run, the id of that run; start.policy is one of its policies'
            )
        return self


class CurriculumRecipe(Section):
    """Selection and generation of the next tasks."""

    generate: bool = True
    """Generate variations of tasks; False is the paper's ablation."""
    max_generated_share: float = Field(default=0.25, ge=0, le=1)
    """lambda: maximum share of generated tasks per round."""
    method: CurriculumMethodRecipe = CurriculumMethodRecipe()
    variations_per_round: int = Field(default=8, ge=0)
    """Number of tasks at the edge of the policy's ability to vary after each round."""
    vary_generated: bool = False
    """Vary generated tasks, too, as the paper does."""
    candidates_per_task: int = Field(default=1, ge=1)
    """n: variations that are written of each; one that is well-formed, feasible and new is taken."""
    select_by: Literal["rules", "model"] = "rules"
    """Choice among several candidates. rules: the first that the environment's rules accept. model: of those, the one that
    generator_model selects as challenging but feasible, of high quality, different and realistic (prompts C.2)."""
    generator: GeneratorRecipe = GeneratorRecipe()
    generator_model: str = ""
    """Model at the OpenAI-compatible endpoint that generates variations; empty: the experience model does."""
    generator_temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of the task generator."""

    @model_validator(mode="after")
    def _a_model_that_selects_has_a_name(self) -> Self:
        if self.select_by == "model" and not self.generator_model:
            raise ValueError('curriculum.select_by = "model" needs curriculum.generator_model')
        return self


class RolloutRecipe(Section):
    """Rollouts to learn from."""

    group_size: int = Field(default=8, ge=1)
    """G: number of episodes per task. 1 for methods that compare no episodes, such as PPO, which then plays G times as
    many tasks."""
    temperature: float = Field(default=0.8, gt=0)
    """Sampling temperature in rollouts. Greedy rollouts would never punish mistakes made only at temperature 1."""
    entity_renaming: float = Field(default=0.5, ge=0, le=1)
    """Share of a round's tasks with entity renaming: the policy sees names that are invented or borrowed from other
    tasks, while the environment, dreamt or real, uses the true ones. What it learns is then not tied to names."""


class RlRecipe(RolloutRecipe):
    """Reinforcement learning, in the dream and in the real environment."""

    groups_per_round: int = Field(default=32, ge=1)
    """P: number of tasks per round."""
    reward: RewardRecipe = RewardRecipe()
    grouping: GroupingRecipe = GroupingRecipe()
    advantage: AdvantageRecipe = AdvantageRecipe()
    replay: ReplayRecipe = ReplayRecipe()
    auxiliary: AuxiliaryRecipe = AuxiliaryRecipe()
    loss: LossRecipe = LossRecipe()
    format_penalty: float = Field(default=0.0, ge=0)
    """Subtracted from the reward for each answer without an action: cut off, or of another form than `policy` asks for.
    verl-agent has 0.1."""
    mask_truncated: bool = False
    """Leave episodes that reached the step limit out of the loss."""
    learning_rate: float = Field(default=4e-4, gt=0)
    """Learning rate after warm-up, in the first round of a stage."""
    warmup_updates: int = Field(default=8, ge=0)
    """Number of warm-up updates until the learning rate is reached: Adam's first steps are as long as all others, but
    blind."""
    decay_per_round: float = Field(default=0.93, gt=0, le=1)
    """Factor on the learning rate after each round."""
    updates_per_round: int = Field(default=2, ge=1)
    """Number of optimiser steps per pass over the groups of a round, which are divided among them."""
    passes_per_round: int = Field(default=1, ge=1)
    """Number of passes over the groups of a round. From the second one on, the policy has seen all of them, which the
    clipping of the loss bounds (PPO, arXiv 1707.06347)."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Maximum norm of the gradients; longer ones are scaled down."""
    max_kl: float | None = Field(default=None, gt=0)
    """Maximum KL divergence per sampled token from the policy before a round to the one after it. A round that goes further
    is undone. It takes another forward pass; None: it is not measured."""

    @property
    def rollouts(self) -> RolloutRecipe:
        """Fields that decide how a group is rolled out."""
        return RolloutRecipe(**{name: getattr(self, name) for name in RolloutRecipe.model_fields})

    def in_round(self, round: int) -> Self:
        """Return this section with the learning rate of a round, counted from 0."""
        return self.model_copy(update={"learning_rate": self.learning_rate * self.decay_per_round**round})


class DreamRecipe(Section):
    """Training inside the experience model."""

    num_rounds: int = Field(default=20, ge=0)
    """Number of rounds of propose, dream, train."""
    calibrate_every: int = Field(default=5, ge=1)
    """Rounds between two comparisons of dream and real success on valid tasks."""
    target: float = Field(default=1, gt=0, le=1)
    """Real success at which the policy has learnt: training ends once the lower bound of the 95% interval of success on
    valid tasks, measured between rounds, is at least this. The bound of 80 wins in 80 tasks is 0.954. 1: no target,
    since no bound reaches it."""
    patience: int = Field(default=0, ge=0)
    """Number of calibrations in a row without a new highest success, after which training ends. 0: unlimited."""
    max_staleness: int = Field(default=0, ge=0)
    """Number of rounds to dream in advance while the policy trains; 0: alternate. Episodes switch to the newer policy
    at their next turn, and no round is dreamt across a calibration."""
    num_shards: int = Field(default=1, ge=1)
    """Number of parts that a round's groups are split into, each with its own seed. They are dreamt in sequence, or side
    by side: on a CPU in as many processes as there are threads, or on the workers of a Ray cluster, where a part stays
    with the policy that the round began with."""
    max_gap: float = Field(default=0.2, ge=0, le=1)
    """Maximum absolute difference of dream and real success on valid tasks."""
    when_gap_exceeded: Literal["stop", "refit"] = "stop"
    """stop: end training in the dream. refit: play real episodes of train tasks with the present policy, where its
    dreams erred most, and fit the experience model to them (arXiv 2605.29032); their steps count as real training."""
    refit_episodes: int = Field(default=64, ge=1)
    """Number of real episodes per refit."""
    consolidate_every: int = Field(default=0, ge=0)
    """Rounds between two consolidations: the policy is cloned anew from the demonstrations and the shortest win of each
    task that it ever won, and training continues from there, also as the reference of KL terms. 0: none."""
    consolidation_epochs: float = Field(default=0, ge=0)
    """Number of passes over demonstrations and wins in a consolidation, where the loss settles in fewer than at the
    start, since there are more examples. 0: as many as at the start (start.sft.epochs)."""
    consolidated_wins: Literal["replayed", "dreamt"] = "replayed"
    """replayed: wins whose actions also won in the real environment, one real episode per task, which counts as real
    training. dreamt: all dreamt wins as they are. Real wins, such as those of on-policy episodes, always count."""


class RealRecipe(Section):
    """Sim-to-real: the same reinforcement learning in the real environment, starting from the promoted policy."""

    num_rounds: int = Field(default=2, ge=0)
    """Number of rounds."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Learning rate, instead of rl.learning_rate: about the value that its decay in the dream ends with."""
    consolidate_every: int = Field(default=0, ge=0)
    """Rounds between two consolidations, as in the dream; 0: none."""
    consolidation_epochs: float = Field(default=0, ge=0)
    """Number of passes in a consolidation, as in the dream; 0: as many as at the start."""
    unpromoted: bool = False
    """Continue also from a policy that the gate refused. For experiments: the result cannot become champion."""
