"""Recipes: what to run. One frozen TOML file without unknown fields; the flow's only parameter.

Field docstrings are shown by Prefect's form and by `dreamgym check`.
"""

from typing import Any, Self

from pydantic import Field, model_validator

from schemas.recipes.data import AnnotateRecipe, IngestRecipe, RetrievalRecipe
from schemas.recipes.digests import digest_of
from schemas.recipes.environments import CookingRecipe, EnvironmentRecipe
from schemas.recipes.former_fields import refuse_former_fields, translated
from schemas.recipes.judging import EvaluationRecipe, GateRecipe
from schemas.recipes.learning import CurriculumRecipe, DreamRecipe, RealRecipe, RlRecipe, StartRecipe
from schemas.recipes.networks import BackboneRecipe, EngineRecipe, ExperienceRecipe, TrainingRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.section import Section

_LONG_STREAM = 4_096
"""Tokens of a stream beyond which `engine.name = "auto"` takes vLLM on a single GPU."""


class RealPlayRecipe(Section):
    """Sections that decide how a real episode goes; part of the cache key of tasks that play."""

    seed: int
    engine: EngineRecipe
    environment: EnvironmentRecipe
    policy: PolicyRecipe
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
    """Number of GPUs that the recipe was made for; `dreamgym check` and `run` refuse it where there are fewer."""
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
    policy: PolicyRecipe = PolicyRecipe()
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
    def _logs_come_before_what_is_made_of_them(self) -> Self:
        if self.ingest.played_by == "base" and (self.backbone.scratch or self.ingest.path):
            raise ValueError(
                'ingest.played_by = "base" collects episodes of a model that is there before any log: set backbone.model, '
                "with backbone.scratch = false, and leave ingest.path empty"
            )
        return self

    @model_validator(mode="after")
    def _logs_alone_need_nothing_real(self) -> Self:
        if self.environment.can_be_played:
            return self
        early, dream = self.start.early_experience, self.dream
        played = {
            "ingest.path, the folder that `dreamgym ingest` wrote": not self.ingest.path,
            "ingest.from_store = false": self.ingest.from_store,
            "experience.num_on_policy_episodes = 0": self.experience.num_on_policy_episodes > 0,
            'experience.with_reasoning = false, or annotate.annotator = "teacher"': self.annotate.annotator == "facts"
            and self.experience.with_reasoning,
            "dream.target = 1, as it is real success": dream.target < 1,
            'dream.consolidate_every = 0, or dream.consolidated_wins = "dreamt"': dream.consolidate_every > 0
            and dream.consolidated_wins != "dreamt",
            'start.early_experience.executed_in = "dream" and proposed_by = "policy"': early.alternatives > 0
            and (early.executed_in, early.proposed_by) != ("dream", "policy"),
        }
        if wanted := [setting for setting, is_wanted in played.items() if is_wanted]:
            raise ValueError(f'environment "logs" cannot be played or asked; set {"; ".join(wanted)}')
        return self

    @model_validator(mode="after")
    def _servers_sleep_while_nobody_asks(self) -> Self:
        if self.engine.sleep and self.dream.max_staleness:
            raise ValueError(
                "engine.sleep needs dream.max_staleness = 0: rounds are dreamt while the policy is trained"
            )
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

    def with_engine_for(self, num_gpus: int, *, has_vllm: bool) -> Self:
        """Return this recipe with the engine that `auto` means on a machine; a recipe that names one stays as it is.

        Args:
            num_gpus: Number of GPUs of the machine.
            has_vllm: Whether vLLM is installed there.
        """
        if self.engine.name != "auto":
            return self
        has_long_streams = max(self.policy.max_episode_tokens, self.experience.max_prompt_tokens) > _LONG_STREAM
        pays = has_vllm and (num_gpus > 1 or (num_gpus == 1 and has_long_streams))
        return self.model_copy(update={"engine": self.engine.model_copy(update={"name": "vllm" if pays else "torch"})})

    @property
    def without_dreams(self) -> Self:
        """This recipe with real evaluations only."""
        return self.model_copy(update={"evaluation": self.evaluation.without_dreams})

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


def stored_recipe(plain: dict[str, Any]) -> Recipe:
    """Return the recipe of a stored run, whose fields may have had other names.

    Raises:
        ValidationError: it has fields that no version knew.
    """
    return Recipe.model_validate(translated(plain))


def flat_fields(plain: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a recipe in plain data to dotted names, as used by `--set` and MLflow's parameters."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        flat |= flat_fields(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
