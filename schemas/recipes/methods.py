"""Sections of a recipe that name a method, one class for each port.

A method's own options are extra fields of its section. They are declared beside the method's code and checked when the
recipe is loaded (models/methods/find.py).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from schemas.recipes.section import Section


class MethodRecipe(Section):
    """A method by its name, with its options."""

    model_config = ConfigDict(extra="allow")
    port: ClassVar[str]

    name: str
    """Name of a built-in method, or of one from another package; `dreamgym methods` lists them."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of the method, as given."""
        return dict(self.model_extra or {})


class RewardRecipe(MethodRecipe):
    """Reward: worth of an episode, turn by turn."""

    port: ClassVar[str] = "reward"
    name: str = "outcome"


class GroupingRecipe(MethodRecipe):
    """Grouping: the episodes that are compared with each other."""

    port: ClassVar[str] = "grouping"
    name: str = "task"


class AdvantageRecipe(MethodRecipe):
    """Advantage: how much better each turn was than others of its group."""

    port: ClassVar[str] = "advantage"
    name: str = "grpo"


class ReplayRecipe(MethodRecipe):
    """Replay: episodes of earlier rounds to train on again."""

    port: ClassVar[str] = "replay"
    name: str = "none"


class AuxiliaryRecipe(MethodRecipe):
    """Auxiliary: what else is learnt from a round's episodes."""

    port: ClassVar[str] = "auxiliary"
    name: str = "none"


class LossRecipe(MethodRecipe):
    """Loss: the term that an update minimises."""

    port: ClassVar[str] = "loss"
    name: str = "clipped"


class CurriculumMethodRecipe(MethodRecipe):
    """Curriculum: choice of the tasks to play next."""

    port: ClassVar[str] = "curriculum"
    name: str = "reward-entropy"


class GeneratorRecipe(MethodRecipe):
    """Generator: worth of a generated task to the model that wrote it."""

    port: ClassVar[str] = "generator"
    name: str = "frozen"


class JudgeRecipe(MethodRecipe):
    """Judge: review of dreamt transitions."""

    port: ClassVar[str] = "judge"
    name: str = "votes"


class BehaviourRecipe(MethodRecipe):
    """Behaviour: real episodes to collect where there are no logs."""

    port: ClassVar[str] = "behaviour"
    name: str = "noisy-expert"


def methods_in(section: BaseModel, path: str = "") -> Iterator[tuple[str, MethodRecipe]]:
    """Yield the methods that a section names, at any depth, with their dotted paths."""
    for name in type(section).model_fields:
        value, inner = getattr(section, name), f"{path}.{name}".lstrip(".")
        if isinstance(value, MethodRecipe):
            yield inner, value
        elif isinstance(value, BaseModel):
            yield from methods_in(value, inner)
