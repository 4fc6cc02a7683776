"""Runs: the facts known about one execution of a recipe, what it was built from, its artifacts and measurements.

A run's record is plain data stored by its id: the fields below first, then results, lineage and gate as they appear.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal, TypedDict, get_type_hints

from pydantic import BaseModel, ConfigDict, Field

from schemas.recipes.digests import digest_of
from schemas.records import Reference

Record = dict[str, Any]
"""Stored record of a run: its head (RunHead), and its results (flows/running/run_recipe.py)."""


class Trigger(StrEnum):
    """Cause that started a run."""

    HAND = "by hand"
    SCHEDULE = "schedule"
    EVENT = "event"


class Status(StrEnum):
    """State of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    """Interrupted, or its process is gone; the same command resumes it."""


@dataclass(frozen=True, slots=True)
class KeyParts:
    """Parts of the cache key of a versioned task; `dreamgym why` compares those of two steps."""

    task: str
    module: str
    inputs: dict[str, Any]
    code: dict[str, str]
    packages: dict[str, str]
    settings: dict[str, str]

    @property
    def key(self) -> str:
        """Sha256 of all parts."""
        return digest_of(asdict(self))


class RunKey(BaseModel):
    """Everything that is a reason to start a run when it changes."""

    model_config = ConfigDict(frozen=True)

    recipe: dict[str, Any]
    """Fields that differ from the recorded defaults, by dotted name."""
    data: dict[str, str]
    """Digests by name of log files and of the models that the recipe names by folder."""
    code: dict[str, str]
    """Digests of the files that the run's tasks may execute."""
    packages: dict[str, str]
    """Versions of the packages in that code that change numbers."""
    settings: dict[str, str]
    """Settings that change numbers."""


class LeftBehind(BaseModel):
    """Results of earlier runs that this one reads, fixed when it starts. They are no reason to start a run."""

    model_config = ConfigDict(frozen=True)

    table_tag: str = ""
    """Tag of the table version whose real episodes are read; empty: none are read."""
    champion: Reference | None = None
    """The champion when the run started."""
    policy: Reference | None = None
    """The policy of an earlier run that the recipe starts from."""
    experience_model: Reference | None = None
    """The experience model of the recipe's last run that has one."""
    experience: list[Reference] = Field(default=[])
    """Data that this experience model was fitted on."""
    backbone: Reference | None = None
    """Backbone that it was first fitted from."""


class RunHead(BaseModel):
    """A run's record when it starts."""

    run_id: str
    number: int
    """Sequence number that orders the runs of a home, independent of the clock."""
    recipe: dict[str, Any]
    recipe_digest: str
    status: Status = Status.RUNNING
    trigger: Trigger = Trigger.HAND
    reasons: list[str] = Field(default=[])
    """Reasons why it was started, one sentence each."""
    asked_again: bool = False
    until: str
    """The last requested stage."""
    reached: str = ""
    """The last completed stage; empty before the first."""
    started_utc: str
    finished_utc: str = ""
    key: RunKey
    left_behind: LeftBehind = LeftBehind()


PolicyKey = Literal["start", "dream", "champion", "sim_to_real"]
"""Name of a policy in a run's artifacts and results."""


NOT_PROVEN = "not proven for real: no real environment was played, only dreams of held-out logged tasks"
"""First objection of a verdict without a real environment; `dreamgym promote --unproven` overrules it, and it alone."""

BASELINES = {"unchanged": "a state that stays as it is", "neighbour": "the nearest logged transition"}
"""Predictions of next states that need no model, by their name in measurements on held-out logs."""


class Artifacts:
    """Data and models of a run, by reference. An artifact is an attribute once its step has run."""

    logs: Reference
    valid_logs: Reference
    """Logged episodes held out for calibration, where there is no real environment."""
    test_logs: Reference
    """Logged episodes held out for the report, where there is no real environment."""
    backbone: Reference
    alternatives: Reference
    """Episodes along demonstrations that end with another action; with early experience."""
    world_model: Reference
    """Backbone that knows the consequences of these actions, from which the policy is cloned."""
    start: Reference
    """Policy that training begins with."""
    experience: list[Reference]
    """Trajectories that the experience model was fitted to and retrieves from."""
    experience_model: Reference
    generator: Reference
    """Task generator, if it is trained."""
    step_judge: Reference
    """Judge of what states are worth, if one is trained."""
    pool: Reference
    """Agent tasks to draw from, generated ones included."""
    dreams: list[Reference]
    """Dreamt groups, part by part."""
    wins: Reference
    """Shortest win of each task, that the policy was last consolidated from."""
    dream: Reference
    """Policy after training in the dream."""
    champion: Reference
    """Champion that the run's policies were judged against."""
    sim_to_real: Reference
    """Policy after training in the real environment."""

    def __init__(self, **stored: Any) -> None:
        """Create artifacts from a run's record; other entries of its lineage are left out."""
        vars(self).update({name: value for name, value in stored.items() if name in get_type_hints(Artifacts)})

    def __contains__(self, name: str) -> bool:
        """Return whether an artifact is there."""
        return name in vars(self)

    def policy(self, name: PolicyKey) -> Reference:
        """Return a policy by its name.

        Raises:
            AttributeError: the run has no such policy yet.
        """
        return getattr(self, name)

    def drop_champion(self) -> None:
        """Forget the champion, before another judgement."""
        vars(self).pop("champion", None)

    def plain(self) -> dict[str, Any]:
        """Return the artifacts by name."""
        return dict(vars(self))


class Evaluation(TypedDict):
    """Result of the task `evaluate`; measurements of dreams are absent where nothing was dreamt."""

    real_success: float
    interval_low: float
    interval_high: float
    num_steps: float
    successes: dict[str, float]
    """Share of each task's episodes that succeeded, by task id."""
    families: dict[str, str]
    """Family by task id."""
    num_failed: int
    """Number of episodes without an outcome."""
    samples: Reference
    replayed_samples: Reference
    dream_success: float
    dream_real_gap: float
    outcome_agreement: float
    outcome_kappa: float
    outcome_kappa_high: float
    state_agreement: float
    num_replayed_steps: float
    one_step_reward_error: float
    one_step_state_error: float
    num_compared_steps: float
    effective_horizon: float
    lemma1_bound: float


class DreamtEvaluation(TypedDict):
    """Result of the task `dream_logged_tasks`: a policy in dreams of held-out logged tasks."""

    dream_success: float
    dream_success_low: float
    dream_success_high: float
    num_tasks: int
    num_broken: int
    """Number of dreams without an outcome."""
    dreamt_successes: dict[str, float]
    """Share of each task's dreams that succeeded, by task id."""
    samples: Reference


class UnprovenVerdict(TypedDict):
    """Result of the task `judge_unproven`: a verdict without a real environment, which never passes."""

    candidate: str
    start: str
    champion: str
    evaluated_tasks: str
    thresholds: dict[str, Any]
    passed: bool
    dreamt_gain: dict[str, float]
    reasons: list[str]
    over_champion: None
    report: Reference
    """The stored verdict, which a promotion rests on."""


class Judgement(TypedDict):
    """Result of the task `judge_candidate`; see Verdict in models/measurement/gate.py."""

    candidate: str
    start: str
    champion: str
    panel: dict[str, Any] | None
    judged_on: str
    evaluated_tasks: str
    thresholds: dict[str, Any]
    passed: bool
    calibrated: bool
    gain: dict[str, float]
    chance: float
    families: dict[str, Any]
    unseen_families: list[str]
    reasons: list[str]
    over_champion: dict[str, Any] | None
    report: Reference
    """The stored judgement, which a promotion rests on."""
