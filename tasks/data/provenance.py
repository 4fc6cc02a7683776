"""Provenance of rows that the running task writes."""

from infra.context import run_context
from tasks.data.rows import Provenance


def made_here(seed: int, round: int = 0, policy: str = "", experience_model: str = "") -> Provenance:
    """Return provenance of the present run, with digests of the models involved."""
    return Provenance(run_context().recipe_digest, seed, round, policy, experience_model, run_context().run_id)
