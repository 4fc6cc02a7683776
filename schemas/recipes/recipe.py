"""Recipes: what to run. One frozen TOML file without unknown fields; the flow's only parameter.

Field docstrings are shown by Prefect's form and by `dreamgym check`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from schemas.recipes.digests import digest_of
from schemas.recipes.environments import CookingRecipe, EnvironmentRecipe
from schemas.recipes.former_fields import refuse_former_fields
from schemas.recipes.methods import (
    AdvantageRecipe,
    BehaviourRecipe,
    CurriculumMethodRecipe,
    GroupingRecipe,
    JudgeRecipe,
    LossRecipe,
    RewardRecipe,
)
from schemas.recipes.section import Section, Share


class IngestRecipe(Section):
    """Offline real trajectories."""

    path: str = ""
    """JSONL or Parquet file of logged transitions, or a folder of them as written by `dreamgym ingest`; empty: collect
    episodes with the behaviour below."""
    from_store: bool = False
    """Also read the real episodes of train tasks that earlier runs left in the replay store: logs, episodes of their
    policies, sim-to-real. New ones alone do not trigger a run."""
    require_known_tasks: bool = True
    """Require the log's tasks to be the environment's own; else accept any that a task generator could produce."""
    episodes_per_task: int = Field(default=4, ge=1)
    """Logged episodes of each train task."""
    behaviour: BehaviourRecipe = BehaviourRecipe()
    max_bad_share: float = Field(default=0.2, ge=0, le=1)
    """Share of quarantined rows above which ingest stops."""


class AnnotateRecipe(Section):
    """Source of the reasoning traces."""

    annotator: Literal["facts", "teacher"] = "facts"
    """facts: from the environment's own rules, offline. teacher: from an OpenAI-compatible endpoint."""
    teacher_model: str = ""
    """Name of the teacher model at the endpoint."""

    @model_validator(mode="after")
    def _teacher_has_a_model(self) -> Self:
        if self.annotator == "teacher" and not self.teacher_model:
            raise ValueError("annotator 'teacher' needs annotate.teacher_model")
        return self


class SftRecipe(Section):
    """Supervised fine-tuning."""

    epochs: float = Field(default=2.0, gt=0)
    """Number of passes over the examples."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate, with linear warm-up and cosine decay."""
    tokens_per_update: int = Field(default=4_096, ge=256)
    """Batch size in tokens; the length of each example is rounded up to a multiple of 32."""


class ScratchRecipe(Section):
    """A small backbone and its tokenizer, trained from scratch on the run's own logs."""

    hidden_size: int = Field(default=128, ge=16)
    """Hidden width; must be a multiple of twice num_heads."""
    num_layers: int = Field(default=4, ge=1)
    """Number of layers."""
    num_heads: int = Field(default=4, ge=1)
    """Number of attention heads; there are half as many key-value heads."""
    vocab_size: int = Field(default=1_024, ge=512)
    """Vocabulary size of its byte-level tokenizer."""
    sft: SftRecipe = SftRecipe(epochs=4, learning_rate=2e-3, tokens_per_update=8_192)
    """Next-token prediction on all transitions of the logs, prompts included."""

    @model_validator(mode="after")
    def _heads_are_even(self) -> Self:
        if self.hidden_size % (2 * self.num_heads):
            raise ValueError(f"hidden_size {self.hidden_size} is no multiple of twice num_heads, {2 * self.num_heads}")
        return self


class BackboneRecipe(Section):
    """The network that policy and experience model start from."""

    model: str = "textworld-tiny"
    """Name of a shipped backbone, a folder, or a hub id."""
    revision: str | None = None
    """Commit of a hub model; required for hub models."""
    random_init: bool = False
    """Load architecture and tokenizer only and initialise weights at random, to try a recipe without its weights."""
    scratch: ScratchRecipe | None = None
    """Train a backbone from scratch on the logs instead of loading `model`."""
    learn_transitions: bool = False
    """Fit the backbone to the logs' transitions first, like the experience model, so that the policy knows what actions
    do before it learns which to take: implicit world modelling (Early Experience, arXiv 2510.08558)."""


class TrainingRecipe(Section):
    """Settings of all fine-tuning in a run, supervised and reinforcement learning."""

    lora_rank: int = Field(default=0, ge=0)
    """Rank of low-rank adapters on every projection of attention and MLP, trained instead of all weights; 0: train all
    weights. 16 is common for a large model, with higher learning rates."""
    lora_alpha: int = Field(default=32, gt=0)
    """Scale of the adapters: they are multiplied by lora_alpha / lora_rank."""
    tokens_per_batch: int = Field(default=16_000, ge=256)
    """Tokens per micro-batch, counting every stream as long as the longest; gradients are accumulated over an update.
    Fewer tokens need less memory."""
    gradient_checkpointing: bool = False
    """Recompute activations within a block in the backward pass: a third more computation, far less memory."""


class ExperienceRecipe(Section):
    """The experience model."""

    endpoint_model: str = ""
    """Name of a model at the OpenAI-compatible endpoint that predicts the environment without fine-tuning, instead of a
    fine-tuned backbone; on-policy episodes are then only used for retrieval."""
    start_from: Literal["backbone", "last"] = "backbone"
    """backbone: fit on all experience. last: continue from the last run's experience model on what is new."""
    replayed_share: float = Field(default=0.5, ge=0, lt=1)
    """Share of old transitions in the data of a model that is trained further, against forgetting."""
    sft: SftRecipe = SftRecipe(epochs=1.0)
    with_reasoning: bool = True
    """Predict reasoning before the next state; False is the paper's ablation."""
    history_length: int = Field(default=1, ge=0)
    """Number of earlier actions in the prompt."""
    entity_renaming: float = Field(default=0.3, ge=0, le=1)
    """Share of trajectories also shown with entity renaming, so that the model copies names, not memorises them."""
    rare_outcome_copies: int = Field(default=4, ge=1)
    """Copies per pass of each transition that ends an episode."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature of predictions; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling threshold of sampled predictions (votes and retries): only the most likely tokens that together
    reach this probability."""
    enforce_admissible_actions: bool = True
    """Hold dreams to the admissible actions that dreamt states list: an unlisted action is refused without a
    prediction, and a prediction that refuses a listed one is sampled again. False leaves both to the model."""
    judge: JudgeRecipe = JudgeRecipe()
    num_retries: int = Field(default=3, ge=0)
    """Maximum number of times a wrong prediction is sampled again. After that, an unparsable one counts as a failure, and
    one that refuses an action that its state accepts stands."""
    max_new_tokens: int = Field(default=128, ge=16)
    """Maximum length of a prediction in tokens; a run warns if the training data has longer ones."""
    num_on_policy_episodes: int = Field(default=400, ge=0)
    """Real episodes of the starting policy to add to the logs."""
    on_policy_temperatures: tuple[Annotated[float, Field(ge=0)], ...] = Field(default=(1.0, 1.3), min_length=1)
    """Temperatures at which these are sampled: a hot policy shows mistakes that training will try later."""

    @property
    def as_fitted(self) -> Self:
        """This section with prediction-only fields at their defaults, so that a change of the judge refits nothing."""
        of_predictions = (
            *("start_from", "temperature", "top_p", "enforce_admissible_actions", "judge", "num_retries"),
            "max_new_tokens",
        )
        return self.model_copy(update={name: type(self).model_fields[name].default for name in of_predictions})


class RetrievalRecipe(Section):
    """Retrieval of demonstrations that ground predictions."""

    encoder: str = "hashing"
    """hashing, or the folder or hub id of a sentence-transformers model."""
    revision: str | None = None
    """Commit of a hub model; required for hub models."""
    num_demonstrations: int = Field(default=1, ge=0)
    """Number of demonstrations k; 0 is the paper's ablation without replay."""
    max_dreamt_share: float = Field(default=0.5, ge=0, le=1)
    """Maximum share of dreamt demonstrations among the k, rounded down: with k = 1 every demonstration is real."""


class StartRecipe(Section):
    """The starting policy: cloned from logged successes, or an existing policy."""

    from_: Literal["demonstrations", "base", "champion"] = Field(default="demonstrations", alias="from")
    """demonstrations: the backbone, cloned from logged successes. base: the backbone as is. champion: the champion at
    the start of the run, or demonstrations if there is none yet."""
    remember_episode: bool = False
    """Show the policy the whole episode so far; else the task, its last actions and the present state, which here
    includes what was seen before."""
    history_length: int = Field(default=2, ge=0)
    """Number of last actions shown to a policy that does not remember the episode."""
    num_demonstrations: int = Field(default=25, ge=1)
    """Number of tasks whose logs are cloned; the shortest success of each is used."""
    renamed_copies: int = Field(default=3, ge=0)
    """Extra copies of each demonstration with entity renaming, so that the policy learns to copy names."""
    sft: SftRecipe = SftRecipe(epochs=5, learning_rate=5e-4, tokens_per_update=2_048)


class CurriculumRecipe(Section):
    """Selection and generation of the next tasks."""

    generate: bool = True
    """Generate variations of tasks; False is the paper's ablation."""
    max_generated_share: float = Field(default=0.25, ge=0, le=1)
    """lambda: maximum share of generated tasks per round."""
    method: CurriculumMethodRecipe = CurriculumMethodRecipe()
    variations_per_round: int = Field(default=8, ge=0)
    """Number of tasks at the edge of the policy's ability to vary after each round."""
    generator_model: str = ""
    """Model at the OpenAI-compatible endpoint that generates variations; empty: the experience model does."""
    generator_temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature of the task generator."""


class RolloutRecipe(Section):
    """Rollouts to learn from."""

    group_size: int = Field(default=8, ge=2)
    """G: number of episodes per task."""
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
    loss: LossRecipe = LossRecipe()
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
    """Number of optimiser steps per round."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Maximum norm of the gradients; longer ones are scaled down."""

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
    max_staleness: int = Field(default=0, ge=0)
    """Number of rounds to dream in advance while the policy trains; 0: alternate. Episodes switch to the newer policy
    at their next turn, and no round is dreamt across a calibration."""
    num_shards: int = Field(default=1, ge=1)
    """Number of parts that a round's groups are split into, each with its own seed. They run in sequence, or in
    parallel on the workers of a Ray cluster, where a part stays with the policy that the round began with."""
    max_gap: float = Field(default=0.2, ge=0, le=1)
    """Maximum absolute difference of dream and real success on valid tasks."""
    when_gap_exceeded: Literal["stop", "refit"] = "stop"
    """stop: end training in the dream. refit: play real episodes of train tasks with the present policy, where its
    dreams erred most, and fit the experience model to them (arXiv 2605.29032); their steps count as real training."""
    refit_episodes: int = Field(default=64, ge=1)
    """Number of real episodes per refit."""


class RealRecipe(Section):
    """Sim-to-real: the same reinforcement learning in the real environment, starting from the promoted policy."""

    num_rounds: int = Field(default=2, ge=0)
    """Number of rounds."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Learning rate, instead of rl.learning_rate: about the value that its decay in the dream ends with."""
    unpromoted: bool = False
    """Continue also from a policy that the gate refused. For experiments: the result cannot become champion."""


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


class EngineRecipe(Section):
    """The engine that samples the tokens of policy and experience model."""

    name: Literal["torch", "vllm"] = "torch"
    """torch: in this process. vllm: one server per model, in a separate Python environment created on first use."""
    vllm_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Data type of vLLM's weights; auto is bfloat16 for a float32 model. The torch engine samples in bfloat16."""


class RealPlayRecipe(Section):
    """Sections that decide how a real episode goes; part of the cache key of tasks that play."""

    seed: int
    engine: EngineRecipe
    environment: EnvironmentRecipe
    start: StartRecipe


class PlayRecipe(RealPlayRecipe):
    """Sections that decide how a dreamt episode goes, in addition to those of a real one."""

    experience: ExperienceRecipe
    retrieval: RetrievalRecipe


class Recipe(Section):
    """Everything that decides the result of a run."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")
    """Lower-case letters, digits, dots and dashes."""
    description: str = ""
    """One-sentence description."""
    gpus: int = Field(default=0, ge=0)
    """Number of GPUs that the recipe was made for; `dreamgym check` refuses it where there are fewer."""
    duration: str = ""
    """Duration of a run, in words, on such hardware."""
    seed: int = Field(default=0, ge=0)
    """Seed of all randomness except the tasks."""
    environment: EnvironmentRecipe = CookingRecipe()
    ingest: IngestRecipe = IngestRecipe()
    annotate: AnnotateRecipe = AnnotateRecipe()
    backbone: BackboneRecipe = BackboneRecipe()
    training: TrainingRecipe = TrainingRecipe()
    engine: EngineRecipe = EngineRecipe()
    experience: ExperienceRecipe = ExperienceRecipe()
    retrieval: RetrievalRecipe = RetrievalRecipe()
    start: StartRecipe = StartRecipe()
    curriculum: CurriculumRecipe = CurriculumRecipe()
    rl: RlRecipe = RlRecipe()
    dream: DreamRecipe = DreamRecipe()
    real: RealRecipe = RealRecipe()
    evaluation: EvaluationRecipe = EvaluationRecipe()
    gate: GateRecipe = GateRecipe()

    @model_validator(mode="before")
    @classmethod
    def _fields_have_their_present_names(cls, given: Any) -> Any:
        if isinstance(given, dict):
            refuse_former_fields(given)
        return given

    @model_validator(mode="after")
    def _margins_are_of_known_families(self) -> Self:
        known = ", ".join(self.environment.family_names)
        if strangers := self.gate.family_margins.keys() - set(self.environment.family_names):
            raise ValueError(f"gate.family_margins names {', '.join(sorted(strangers))}; the families are {known}")
        return self

    @model_validator(mode="after")
    def _transitions_are_learnt_by_what_is_trained(self) -> Self:
        if self.backbone.learn_transitions and self.experience.endpoint_model:
            raise ValueError("backbone.learn_transitions fits a network here; leave experience.endpoint_model empty")
        return self

    @model_validator(mode="after")
    def _episodes_of_a_task_differ(self) -> Self:
        if self.evaluation.episodes_per_task > 1 and self.evaluation.temperature == 0:
            raise ValueError("evaluation.episodes_per_task above 1 needs an evaluation.temperature above 0")
        return self

    @property
    def real_rl(self) -> RlRecipe:
        """Reinforcement learning settings of sim-to-real."""
        return self.rl.model_copy(update={"learning_rate": self.real.learning_rate})

    @property
    def digest(self) -> str:
        """Sha256 of the whole recipe."""
        return digest_of(self)

    @property
    def endpoint_models(self) -> list[str]:
        """Names of the endpoint models that the recipe uses."""
        teacher = self.annotate.teacher_model if self.annotate.annotator == "teacher" else ""
        return [name for name in (teacher, self.experience.endpoint_model, self.curriculum.generator_model) if name]

    @property
    def play(self) -> PlayRecipe:
        """Sections that decide how an episode goes."""
        return PlayRecipe(**{name: getattr(self, name) for name in PlayRecipe.model_fields})

    @property
    def real_play(self) -> RealPlayRecipe:
        """Sections that decide how a real episode goes."""
        return RealPlayRecipe(**{name: getattr(self, name) for name in RealPlayRecipe.model_fields})


def flat_fields(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a recipe in plain data to dotted names, as used by `--set` and MLflow's parameters."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        flat |= flat_fields(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
