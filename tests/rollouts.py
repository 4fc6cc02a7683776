"""Settings of rollouts in tests."""

from collections.abc import Sequence
from typing import Any

from models.rollout.rollouts import RolloutOptions
from models.text.policies.plain_policy import PlainPolicy
from models.text.prompts import PromptFormat
from schemas.recipes.policy import PolicyRecipe
from schemas.sampling import Sampled


def rollout_options(**changed: Any) -> RolloutOptions:
    """Return the settings of short sampled episodes, but for these fields."""
    return RolloutOptions(**{"temperature": 1.0, "max_steps": 12} | changed)


def plain_policy(format: PromptFormat, *, remember_episode: bool = True, **fields: Any) -> PlainPolicy:
    """Return the format of a policy with our own markers that remembers the episode, but for these fields."""
    return PlainPolicy(format, PolicyRecipe(remember_episode=remember_episode, **fields))


class Speaker:
    """Engine that answers in turn."""

    num_prefilled = num_sampled = 0

    def __init__(self, answers: Sequence[Sampled]) -> None:
        self.answers = iter(answers)

    def open(self, num_rows: int, capacity: int = 256):
        return self

    def restart(self, row): ...

    def extend(self, rows, ids): ...

    def length(self, row):
        return 0

    def generate(self, rows, sampling):
        return [next(self.answers) for _ in rows]
