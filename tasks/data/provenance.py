"""Provenance of rows that the running task writes."""

from infra.context import cycle
from tasks.data.rows import Provenance


def made_here(seed: int, round: int = 0, policy: str = "", experience_model: str = "") -> Provenance:
    """Provenance in the present run, with digests of the models that had a part in it."""
    return Provenance(cycle().recipe_digest, seed, round, policy, experience_model, cycle().run_id)
