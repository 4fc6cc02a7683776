"""Recipes of the real environments: which tasks of which environment, and how long an episode may take.

The text under a field is what Prefect's form and `dreamgym check` show.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from schemas.section import Section


class BaseEnvironment(Section):
    """What the recipes of all environments have in common."""

    name: str
    num_train_tasks: int = Field(default=200, ge=2)
    """Tasks of the train split: logs, dreams and real fine-tuning use them."""
    num_valid_tasks: int = Field(default=80, ge=2)
    """Tasks of the valid split: calibration during training."""
    num_test_tasks: int = Field(default=400, ge=2)
    """Held-out tasks of the test split: evaluated and reported, never trained or tuned on."""
    max_steps: int = Field(default=8, ge=1)
    """Limit of an episode. A tight one makes idle steps cost something while training, too."""

    @property
    def family_names(self) -> tuple[str, ...]:
        """Families of tasks: the gate looks at each."""
        raise NotImplementedError


class CookingFamily(Section):
    """One family of cooking games, in the words of TextWorld's tw-cooking."""

    recipe: int = Field(default=1, ge=1, le=3)
    """Ingredients."""
    go: Literal[1, 6, 9, 12] = 1
    """Rooms."""
    open: bool = False
    """Doors and containers start closed, so what is inside is hidden."""
    cook: bool = True
    """Ingredients must be cooked."""
    cut: bool = True
    """Ingredients must be cut."""


class CookingRecipe(BaseEnvironment):
    """TextWorld's cooking games."""

    name: Literal["textworld-cooking"] = "textworld-cooking"
    families: dict[str, CookingFamily] = Field(default={"one-ingredient": CookingFamily()}, min_length=1)
    """Families of tasks by name; tasks are dealt to them in turn, and the gate looks at each."""

    @property
    def family_names(self) -> tuple[str, ...]:
        """Names of the families."""
        return tuple(self.families)


AlfworldFamily = Literal[
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
]
"""ALFWorld's own names of its six types of tasks."""
_ALL_FAMILIES: tuple[AlfworldFamily, ...] = AlfworldFamily.__args__


class AlfworldRecipe(BaseEnvironment):
    """ALFWorld: household tasks in text (arXiv 2010.03768). The games lie in $ALFWORLD_DATA."""

    name: Literal["alfworld"] = "alfworld"
    families: tuple[AlfworldFamily, ...] = Field(default=_ALL_FAMILIES, min_length=1)
    """Types of tasks; tasks are dealt to them in turn, and the gate looks at each."""
    test_split: Literal["valid_seen", "valid_unseen"] = "valid_seen"
    """Of ALFWorld's own splits, the one that is held out: rooms that training saw, or others."""
    num_valid_tasks: int = Field(default=70, ge=2)
    """Tasks for calibration during training: the last train games, which training leaves out."""
    num_test_tasks: int = Field(default=140, ge=2)
    """Held-out tasks: evaluated and reported, never trained or tuned on. 140 are all of valid_seen."""
    max_steps: int = Field(default=50, ge=1)
    """Limit of an episode."""

    @property
    def family_names(self) -> tuple[str, ...]:
        """Names of the types."""
        return self.families


class WebshopRecipe(BaseEnvironment):
    """WebShop: shopping in text (arXiv 2207.01206), on a server that the user runs, at DREAMGYM_ENVIRONMENT_URL."""

    name: Literal["webshop"] = "webshop"
    num_train_tasks: int = Field(default=1600, ge=2)
    """Goals from number 1,500 on: logs, dreams and real fine-tuning use them."""
    num_valid_tasks: int = Field(default=100, ge=2)
    """Goals from number 500 on: calibration during training."""
    num_test_tasks: int = Field(default=500, ge=2)
    """The first 500 goals: evaluated and reported, never trained or tuned on."""
    max_steps: int = Field(default=15, ge=1)
    """Limit of an episode."""

    @property
    def family_names(self) -> tuple[str, ...]:
        """There is one."""
        return ("webshop",)


def _name_of(environment: Any) -> str:
    name = environment.get("name") if isinstance(environment, dict) else getattr(environment, "name", None)
    return name or "textworld-cooking"


EnvironmentRecipe = Annotated[
    Annotated[CookingRecipe, Tag("textworld-cooking")]
    | Annotated[AlfworldRecipe, Tag("alfworld")]
    | Annotated[WebshopRecipe, Tag("webshop")],
    Discriminator(_name_of),
]
"""The real environment and its tasks, by the name of the environment; without one, TextWorld's cooking games."""
