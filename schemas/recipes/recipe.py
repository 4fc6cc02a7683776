"""Recipes: what to run. One TOML, frozen, nothing unknown in it; the flow's only parameter.

The text under a field is what Prefect's form and `dreamgym check` show.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from schemas.recipes.digests import digest_of
from schemas.recipes.environments import CookingRecipe, EnvironmentRecipe
from schemas.recipes.section import Section, Share


class IngestRecipe(Section):
    """The offline real trajectories."""

    path: str = ""
    """JSONL or Parquet file of logged transitions, or a folder of such files, as `dreamgym ingest` makes it; empty: collect with
    the behaviours below."""
    from_store: bool = False
    """Read the real episodes of train tasks, too, that earlier runs left in the replay store: their logs, their policies' own
    episodes, sim-to-real. New ones are no reason to begin a run."""
    known_tasks: bool = True
    """Tasks of the log must be the environment's own; else they need only be such as a task generator could have made."""
    episodes_per_task: int = Field(default=4, ge=1)
    """Logged episodes of each train task."""
    noise: tuple[Share, ...] = Field(default=(0.0, 0.15, 0.25, 0.5), min_length=1)
    """Error rates of the behaviours: 0 is the expert, 1 random."""
    max_bad_share: float = Field(default=0.2, ge=0, le=1)
    """Quarantined share above which ingest stops."""


class AnnotateRecipe(Section):
    """Who writes the reasoning traces."""

    annotator: Literal["facts", "teacher"] = "facts"
    """facts: the environment's own rules, offline. teacher: an OpenAI-compatible endpoint."""
    teacher_model: str = ""
    """Model name at the endpoint."""

    @model_validator(mode="after")
    def _teacher_has_a_model(self) -> Self:
        if self.annotator == "teacher" and not self.teacher_model:
            raise ValueError("annotator 'teacher' needs annotate.teacher_model")
        return self


class SftRecipe(Section):
    """A supervised fine-tuning."""

    epochs: float = Field(default=2.0, gt=0)
    """Passes over the examples."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak; linear warm-up, cosine decay."""
    tokens_per_update: int = Field(default=4_096, ge=256)
    """Batch size in tokens, each example counted up to the next multiple of 32."""


class ScratchRecipe(Section):
    """A small backbone and its tokenizer, made of nothing but the cycle's own logs."""

    hidden_size: int = Field(default=128, ge=16)
    """Width, a multiple of twice num_heads."""
    num_layers: int = Field(default=4, ge=1)
    """Depth."""
    num_heads: int = Field(default=4, ge=1)
    """Of attention; there are half as many of keys and values."""
    vocab_size: int = Field(default=1_024, ge=512)
    """Of its byte-level tokenizer."""
    sft: SftRecipe = SftRecipe(epochs=4, learning_rate=2e-3, tokens_per_update=8_192)
    """Next-token prediction on all transitions of the logs, prompts and all."""

    @model_validator(mode="after")
    def _heads_are_even(self) -> Self:
        if self.hidden_size % (2 * self.num_heads):
            raise ValueError(f"hidden_size {self.hidden_size} is no multiple of twice num_heads, {2 * self.num_heads}")
        return self


class BackboneRecipe(Section):
    """The network that policy and experience model start from."""

    model: str = "textworld-tiny"
    """A shipped backbone by name, a folder, or a hub id."""
    revision: str | None = None
    """Commit of a hub model; required for one."""
    random_init: bool = False
    """Architecture and tokenizer only, weights at random: to try a recipe without its weights."""
    scratch: ScratchRecipe | None = None
    """In place of a model: one that is made of the logs."""
    learn_transitions: bool = False
    """Fit it to the logs' transitions first, as the experience model will be, so that the policy knows what actions do
    before it is shown which to take: implicit world modelling (Early Experience, arXiv 2510.08558)."""


class TrainingRecipe(Section):
    """What all fine-tuning of a cycle has in common, supervised and by reinforcement."""

    lora_rank: int = Field(default=0, ge=0)
    """Of low-rank adapters on every projection of attention and MLP, trained in place of all weights; 0: all weights.
    16 is common for a large model, with higher learning rates."""
    lora_alpha: int = Field(default=32, gt=0)
    """Adapters count lora_alpha / lora_rank."""
    tokens_per_batch: int = Field(default=16_000, ge=256)
    """Tokens that are computed at a time, if all streams were as long as the longest; the gradients of an update are their
    sum. Fewer take less memory."""
    gradient_checkpointing: bool = False
    """Compute what happens within a block anew in the backward pass: a third more work, and far less memory."""


class ExperienceRecipe(Section):
    """The experience model."""

    endpoint_model: str = ""
    """Name of a model at the OpenAI-compatible endpoint that plays the environment as it is, in place of a fine-tuned
    backbone; num_refit_episodes are then only retrieved from."""
    start_from: Literal["backbone", "last"] = "backbone"
    """backbone: fit it anew on all experience. last: go on from the last run's experience model, on what is new since."""
    replayed_share: float = Field(default=0.5, ge=0, lt=1)
    """Share of old transitions among those that an experience model goes on with, so that it forgets none."""
    sft: SftRecipe = SftRecipe(epochs=1.0)
    with_reasoning: bool = True
    """Reason before the next state; False is the paper's ablation."""
    history_length: int = Field(default=1, ge=0)
    """Earlier actions it is shown."""
    rename_share: float = Field(default=0.3, ge=0, le=1)
    """Share of trajectories also shown with names replaced, so that it copies instead of memorising."""
    rare_outcome_copies: int = Field(default=4, ge=1)
    """How often a transition that ends the episode is shown per pass."""
    temperature: float = Field(default=0.0, ge=0)
    """Of its predictions; 0 is the likeliest."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Of its predictions where they are drawn, as votes and second tries are: only the likeliest tokens that together are
    this likely."""
    heed_lists: bool = True
    """Where states list what they accept, a dream keeps to its own: what a dreamt state does not list is refused without
    asking the model, and a prediction that refuses what it lists is written anew. False leaves both to the model."""
    num_votes: int = Field(default=1, ge=1)
    """Predictions that must agree before a dreamt success counts; what denies it takes its place."""
    max_new_tokens: int = Field(default=128, ge=16)
    """Longest prediction; a cycle says so if it was taught longer ones."""
    num_refit_episodes: int = Field(default=400, ge=0)
    """Real episodes of the starting policy added to the logs: its own mistakes."""
    refit_temperatures: tuple[Annotated[float, Field(ge=0)], ...] = Field(default=(1.0, 1.3), min_length=1)
    """Temperatures at which these are sampled: a hot policy shows the mistakes that training will yet try."""

    @property
    def as_fitted(self) -> Self:
        """What fitting depends on, and the default of what only a prediction does: another vote fits nothing anew."""
        of_predictions = ("start_from", "temperature", "top_p", "heed_lists", "num_votes", "max_new_tokens")
        return self.model_copy(update={name: type(self).model_fields[name].default for name in of_predictions})


class RetrievalRecipe(Section):
    """Grounding in retrieved experience."""

    encoder: str = "hashing"
    """hashing, or a sentence-transformers model by folder or hub id."""
    revision: str | None = None
    """Commit of a hub model; required for one."""
    num_demonstrations: int = Field(default=1, ge=0)
    """k; 0 is the paper's ablation without replay."""
    max_dreamt_share: float = Field(default=0.5, ge=0, le=1)
    """Bound on the dreamt share of the k, rounded down: with a k of 1 every demonstration is real."""


class StartRecipe(Section):
    """The starting policy: behaviour cloning of logged successes, or a policy that is there."""

    from_: Literal["demonstrations", "base", "champion"] = Field(default="demonstrations", alias="from")
    """demonstrations: the backbone, cloned from logged successes. base: the backbone as it is. champion: the policy in force
    when the run was begun; where there is none yet, as demonstrations."""
    remember_episode: bool = False
    """The policy sees the whole episode so far; else the task, its last actions and the present state, which
    here remembers what was seen."""
    history_length: int = Field(default=2, ge=0)
    """How many last actions the policy sees if it does not remember the episode."""
    num_demonstrations: int = Field(default=25, ge=1)
    """Tasks of whose logs it is cloned: the shortest success of each."""
    renamed_copies: int = Field(default=3, ge=0)
    """How often each demonstration is shown once more with names replaced, so that the policy copies names."""
    sft: SftRecipe = SftRecipe(epochs=5, learning_rate=5e-4, tokens_per_update=2_048)


class CurriculumRecipe(Section):
    """Which tasks come next."""

    generate: bool = True
    """Vary tasks; False is the paper's ablation."""
    max_generated_share: float = Field(default=0.25, ge=0, le=1)
    """lambda: bound on generated tasks per round."""
    floor: float = Field(default=0.05, gt=0, le=0.25)
    """Weight of a task whose group all succeeded or all failed, where a reward entropy is 0.25 at most. Lower it where
    most tasks are like that, or they fill the rounds."""
    variations_per_round: int = Field(default=8, ge=0)
    """Tasks at the edge of the policy's ability that are varied after each round."""
    generator_model: str = ""
    """Name of a model at the OpenAI-compatible endpoint that varies tasks; empty: the experience model does."""
    generator_temperature: float = Field(default=1.0, gt=0)
    """Of the task generator."""


class GrpoRecipe(Section):
    """Reinforcement learning, in the dream and in the real environment alike."""

    groups_per_round: int = Field(default=32, ge=1)
    """P: tasks per round."""
    group_size: int = Field(default=8, ge=2)
    """G: episodes per task."""
    learning_rate: float = Field(default=4e-4, gt=0)
    """After the warm-up, in the first round of a stage."""
    warmup_updates: int = Field(default=8, ge=0)
    """Updates until the learning rate is reached."""
    decay_per_round: float = Field(default=0.93, gt=0, le=1)
    """Factor on the learning rate from one round to the next."""
    updates_per_round: int = Field(default=2, ge=1)
    """Optimiser steps on each round's groups."""
    negative_scale: float = Field(default=0.5, ge=0)
    """Weight of negative advantages; 1 is the paper's GRPO."""
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    """Lower bound of the ratio is 1 - clip_low."""
    clip_high: float = Field(default=0.28, gt=0)
    """Upper bound of the ratio is 1 + clip_high."""
    kl_coefficient: float = Field(default=0.003, ge=0)
    """Weight of the k3 estimate of the KL to the starting policy."""
    normalise_std: bool = True
    """Divide advantages by the group's standard deviation."""
    leave_one_out: bool = False
    """Compare with the mean of the other episodes."""
    mask_truncated: bool = False
    """Leave episodes that met the step limit out of the loss."""
    importance_correction: Literal["none", "token", "sequence"] = "none"
    """Weigh each action token, or each stream of them, by how likely the trainer finds it over how likely the engine did
    that sampled it: for engines that round otherwise, and for stale rollouts."""
    max_importance_ratio: float = Field(default=2.0, ge=1)
    """Where these weights are cut off."""
    temperature: float = Field(default=0.8, gt=0)
    """Of the policy while it samples; what it does at 1 but not greedily would never be punished."""
    renamed_share: float = Field(default=0.5, ge=0, le=1)
    """Share of a round's tasks whose things the policy is shown under other names, invented ones or those of other tasks'
    things, while the environment, dreamt or real, goes by the true ones: what it learns there is not tied to a name."""


class DreamRecipe(Section):
    """Training inside the experience model."""

    num_rounds: int = Field(default=20, ge=0)
    """Rounds of propose, dream, train."""
    calibrate_every: int = Field(default=5, ge=1)
    """Rounds between two comparisons of dream and real on valid tasks."""
    max_staleness: int = Field(default=0, ge=0)
    """Rounds that are dreamt ahead while the policy trains, so that both go on at once; 0: one after the other. Episodes
    move on to the newer policy at their next turn, and no round is dreamt across a calibration."""
    num_shards: int = Field(default=1, ge=1)
    """Parts that a round's groups are dreamt in, each by a draw of its own: one after the other, or at once on the workers
    of a Ray cluster, where a part stays with the policy that the round began with."""
    max_gap: float = Field(default=0.2, ge=0, le=1)
    """Dream minus real success, either way, beyond which dream and real have parted."""
    when_parted: Literal["stop", "refit"] = "stop"
    """stop: end training in the dream. refit: play real episodes of train tasks with the present policy, where its dreams erred
    most, and go on with an experience model that has learnt them (2605.29032); their steps count as real training."""
    refit_episodes: int = Field(default=64, ge=1)
    """Real episodes of a refit."""


class RealRecipe(Section):
    """Sim-to-real: the same GRPO in the real environment, from the promoted policy."""

    num_rounds: int = Field(default=2, ge=0)
    """Rounds."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """In place of grpo.learning_rate: about where its decay in the dream has ended."""
    unpromoted: bool = False
    """Go on from a policy that the gate refused, too. For experiments: the result cannot become champion."""


class EvaluationRecipe(Section):
    """How a policy is measured, on valid tasks while it trains and on test tasks in the end."""

    panel: Literal["fresh", "pinned"] = "fresh"
    """fresh: test tasks that no judgement used before, where the environment can make them; else all of its set, whose uses are
    counted. pinned: the first test tasks, to compare experiments."""
    max_dreamt_tasks: int = Field(default=400, ge=1)
    """The first so many are dreamt beside; all are played for real."""
    max_failed_share: Share = 0.02
    """Share of episodes that may stay without an outcome, because the real environment failed in them again and again."""

    @property
    def without_dreams(self) -> Self:
        """The same, for real only."""
        return self.model_copy(update={"max_dreamt_tasks": 0})

    temperature: float = Field(default=0.0, ge=0)
    """At which it is sampled, for real and in the dream; 0 is its likeliest action. verl-agent, whose workflow the paper
    follows, evaluates at 0.4: so a policy is not held to a refused action that it would repeat for ever."""
    episodes_per_task: int = Field(default=1, ge=1)
    """Whose mean is a task's success. Of a policy that is sampled, more episodes say more: half of what two policies
    differ by on a task may be luck. At temperature 0 all would be the same."""


class GateRecipe(Section):
    """What a candidate must show before it is promoted."""

    margin: float = Field(default=0.0, ge=0, le=1)
    """The lower bound of the paired gain over the starting policy must be above minus this; 1 asks for
    nothing, of a gain over the champion neither."""
    false_promotion_rate: float = Field(default=0.0035, gt=0, le=1)
    """How often, a judgement, a candidate that equals the champion may take its place by luck. With 0.0035 a false promotion
    happens in one of ten series of thirty nights."""
    family_margin: float = Field(default=0.05, ge=0, le=1)
    """No family of tasks may lose more than this beyond chance, corrected for the number of families."""
    family_margins: dict[str, Share] = Field(default={})
    """The same for single families by name, in place of family_margin."""
    min_outcome_agreement: float = Field(default=0.9, ge=0, le=1)
    """Of dreamt episodes with their real replay; 0 asks for nothing, beyond chance neither."""
    min_outcome_kappa: float = Field(default=0.4, ge=0, le=1)
    """Of that agreement beyond chance (Cohen's kappa); refused is what lies below with its whole 95% interval, so that too
    few episodes to tell, or too few that were lost, refuse nobody."""
    max_dream_real_gap: float = Field(default=0.1, ge=0, le=1)
    """Dream minus real success of the same policy on the same tasks, either way."""
    needs_approval: bool = False
    """A person has to promote what passed."""

    @model_validator(mode="before")
    @classmethod
    def _champions_are_beaten(cls, told: Any) -> Any:
        if isinstance(told, dict) and "champion_margin" in told:
            raise ValueError(
                "champion_margin is replaced by false_promotion_rate: a champion's successor must be better than it, and "
                "the rate says how rarely luck may pass for that"
            )
        return told

    def margin_of(self, family: str) -> float:
        """What a family may lose."""
        return self.family_margins.get(family, self.family_margin)


class EngineRecipe(Section):
    """Who samples the tokens of policy and experience model."""

    name: Literal["torch", "vllm"] = "torch"
    """torch: this process. vllm: a server for each of them, in an environment of their own that is made on first use."""
    vllm_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of vLLM's weights; auto is bfloat16 for a model in float32. The torch engine samples in bfloat16."""


class RealPlayRecipe(Section):
    """The sections that decide how a real episode goes: what tasks that play are keyed by."""

    seed: int
    engine: EngineRecipe
    environment: EnvironmentRecipe
    start: StartRecipe


class PlayRecipe(RealPlayRecipe):
    """Those that decide how a dreamt episode goes, too."""

    experience: ExperienceRecipe
    retrieval: RetrievalRecipe


class Recipe(Section):
    """Everything that decides the result of a cycle."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,62}$")
    """Lower case, digits, dots and dashes."""
    description: str = ""
    """One sentence."""
    seed: int = Field(default=0, ge=0)
    """Of everything that is random but the tasks."""
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
    grpo: GrpoRecipe = GrpoRecipe()
    dream: DreamRecipe = DreamRecipe()
    real: RealRecipe = RealRecipe()
    evaluation: EvaluationRecipe = EvaluationRecipe()
    gate: GateRecipe = GateRecipe()

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

    @model_validator(mode="after")
    def _stale_rollouts_are_corrected(self) -> Self:
        if self.dream.max_staleness and self.grpo.importance_correction == "none":
            raise ValueError("dream.max_staleness needs grpo.importance_correction 'token' or 'sequence'")
        return self

    @property
    def real_grpo(self) -> GrpoRecipe:
        """Reinforcement learning as sim-to-real does it."""
        return self.grpo.model_copy(update={"learning_rate": self.real.learning_rate})

    @property
    def digest(self) -> str:
        """Sha256 of the whole recipe."""
        return digest_of(self)

    @property
    def endpoint_models(self) -> list[str]:
        """Names of the models that it asks at an endpoint."""
        teacher = self.annotate.teacher_model if self.annotate.annotator == "teacher" else ""
        return [name for name in (teacher, self.experience.endpoint_model, self.curriculum.generator_model) if name]

    @property
    def play(self) -> PlayRecipe:
        """Of this recipe, what decides how an episode goes."""
        return PlayRecipe(**{name: getattr(self, name) for name in PlayRecipe.model_fields})

    @property
    def real_play(self) -> RealPlayRecipe:
        """The part of that which real episodes depend on."""
        return RealPlayRecipe(**{name: getattr(self, name) for name in RealPlayRecipe.model_fields})


def flat_fields(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A recipe as plain data with dotted names, as `--set` and MLflow's parameters write them."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        flat |= flat_fields(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
