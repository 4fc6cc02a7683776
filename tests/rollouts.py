"""Settings of rollouts in tests."""

from typing import Any

from models.rollout.rollouts import RolloutOptions


def rollout_options(**changed: Any) -> RolloutOptions:
    """Return the settings of short sampled episodes that the policy remembers, but for these fields."""
    plain = {"remember_episode": True, "history_length": 2, "temperature": 1.0, "max_steps": 12}
    return RolloutOptions(**plain | changed)
