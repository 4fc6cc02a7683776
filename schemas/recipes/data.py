"""Data of a recipe: real trajectories, their reasoning traces, and their retrieval."""

from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.recipes.methods import BehaviourRecipe
from schemas.recipes.section import Section

DemonstrationForm = Literal["changes", "whole"]
"""Form in which the experience model is shown a past transition."""


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
    played_by: Literal["behaviour", "base"] = "behaviour"
    """Player of the episodes that are collected: the behaviour below, or the backbone's model as it is, sampled at
    `rl.temperature`, for environments without an expert."""
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


class RetrievalRecipe(Section):
    """Retrieval of demonstrations that ground predictions."""

    encoder: str = "hashing"
    """hashing, or the folder or hub id of a sentence-transformers model."""
    revision: str | None = None
    """Commit of a hub model; required for hub models."""
    num_demonstrations: int = Field(default=1, ge=0)
    """Number of demonstrations k; 0 is the paper's ablation without replay."""
    demonstrations: DemonstrationForm = "changes"
    """changes: show the action of a demonstration and the changed lines. whole: its task, state, action, reasoning, next
    state and outcome, as Eq. 4 has it."""
    max_dreamt_share: float = Field(default=0.5, ge=0, le=1)
    """Maximum share of dreamt demonstrations among the k, rounded down: with k = 1 every demonstration is real."""
