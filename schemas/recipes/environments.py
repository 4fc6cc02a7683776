"""Recipes of the real environments: the environment, its tasks, and the length of an episode.

Field docstrings are shown by Prefect's form and by `dreamgym check`.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from schemas.recipes.section import Section, Share


class BaseEnvironment(Section):
    """Fields that the recipes of all environments share."""

    has_endless_tasks: ClassVar[bool] = False
    """True if the environment can create test tasks for any number of panels."""
    can_be_played: ClassVar[bool] = True
    """False if only logs of the environment are there."""

    name: str
    num_train_tasks: int = Field(default=200, ge=2)
    """Tasks of the train split: logs, dreams and real fine-tuning use them."""
    num_valid_tasks: int = Field(default=80, ge=2)
    """Tasks of the valid split: calibration during training."""
    num_test_tasks: int = Field(default=400, ge=2)
    """Held-out tasks of the test split: evaluated and reported, never trained or tuned on."""
    max_steps: int = Field(default=8, ge=1)
    """Maximum number of steps per episode. A tight limit penalises idle steps during training, too."""

    @property
    def family_names(self) -> tuple[str, ...]:
        """Names of the task families; an environment without families is one itself."""
        return tuple(getattr(self, "families", (self.name,)))


class CookingFamily(Section):
    """A family of cooking games, in the terms of TextWorld's tw-cooking."""

    recipe: int = Field(default=1, ge=1, le=3)
    """Number of ingredients."""
    go: Literal[1, 6, 9, 12] = 1
    """Number of rooms."""
    open: bool = False
    """True if doors and containers start closed, which hides what is inside."""
    cook: bool = True
    """True if ingredients must be cooked."""
    cut: bool = True
    """True if ingredients must be cut."""


class CookingRecipe(BaseEnvironment):
    """TextWorld's cooking games."""

    has_endless_tasks: ClassVar[bool] = True
    name: Literal["textworld-cooking"] = "textworld-cooking"
    families: dict[str, CookingFamily] = Field(default={"one-ingredient": CookingFamily()}, min_length=1)
    """Families of tasks by name. Tasks are assigned to them in turn, and the gate checks each family."""


AlfworldFamily = Literal[
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
]
"""ALFWorld's names for its six types of tasks."""
_ALL_FAMILIES: tuple[AlfworldFamily, ...] = AlfworldFamily.__args__


class AlfworldRecipe(BaseEnvironment):
    """ALFWorld: household tasks in text (arXiv 2010.03768). The games are read from $ALFWORLD_DATA."""

    name: Literal["alfworld"] = "alfworld"
    families: tuple[AlfworldFamily, ...] = Field(default=_ALL_FAMILIES, min_length=1)
    """Types of tasks. Tasks are assigned to them in turn, and the gate checks each type."""
    test_split: Literal["valid_seen", "valid_unseen"] = "valid_seen"
    """ALFWorld's split to hold out: rooms seen in training (valid_seen) or others (valid_unseen)."""
    num_valid_tasks: int = Field(default=70, ge=2)
    """Tasks for calibration during training: the last train games, which are excluded from training."""
    num_test_tasks: int = Field(default=140, ge=2)
    """Held-out tasks: evaluated and reported, never trained or tuned on. valid_seen has 140 in all."""
    max_steps: int = Field(default=50, ge=1)
    """Maximum number of steps per episode."""


class WebshopRecipe(BaseEnvironment):
    """WebShop: shopping in text (arXiv 2207.01206), on a server run by the user at DREAMGYM_ENVIRONMENT_URL."""

    name: Literal["webshop"] = "webshop"
    num_train_tasks: int = Field(default=1600, ge=2)
    """Goals from number 1,500 on, for logs, dreams and real fine-tuning."""
    num_valid_tasks: int = Field(default=100, ge=2)
    """Goals from number 500 on, for calibration during training."""
    num_test_tasks: int = Field(default=500, ge=2)
    """The first 500 goals: evaluated and reported, never trained or tuned on."""
    max_steps: int = Field(default=15, ge=1)
    """Maximum number of steps per episode."""


MiniwobTask = Literal[
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-large",
    "click-collapsible-2-nodelay",
    "click-collapsible-nodelay",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-tab",
    "click-tab-2",
    "click-test",
    "click-test-2",
    "choose-list",
    "enter-password",
    "enter-text",
    "enter-text-2",
    "find-word",
    "focus-text",
    "focus-text-2",
    "login-user",
    "login-user-popup",
    "navigate-tree",
    "phone-book",
    "read-table",
    "search-engine",
    "simple-arithmetic",
    "use-autocomplete-nodelay",
]
"""MiniWoB++'s names for the tasks that can be solved from their text."""
_ALL_TASKS: tuple[MiniwobTask, ...] = MiniwobTask.__args__


class MiniwobRecipe(BaseEnvironment):
    """MiniWoB++: tasks on web pages (arXiv 1802.08802), in Chromium."""

    has_endless_tasks: ClassVar[bool] = True
    name: Literal["miniwob"] = "miniwob"
    families: tuple[MiniwobTask, ...] = Field(default=_ALL_TASKS, min_length=1)
    """Tasks by MiniWoB++'s names, assigned in turn; the gate checks each."""
    max_steps: int = Field(default=15, ge=1)
    """Maximum number of steps per episode."""


ScienceworldTask = Literal[
    "boil",
    "melt",
    "freeze",
    "change-the-state-of-matter-of",
    "use-thermometer",
    "measure-melting-point-known-substance",
    "measure-melting-point-unknown-substance",
    "power-component",
    "power-component-renewable-vs-nonrenewable-energy",
    "test-conductivity",
    "test-conductivity-of-unknown-substances",
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "find-animal",
    "grow-plant",
    "grow-fruit",
    "chemistry-mix",
    "chemistry-mix-paint-secondary-color",
    "chemistry-mix-paint-tertiary-color",
    "lifespan-longest-lived",
    "lifespan-shortest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "identify-life-stages-1",
    "identify-life-stages-2",
    "inclined-plane-determine-angle",
    "inclined-plane-friction-named-surfaces",
    "inclined-plane-friction-unnamed-surfaces",
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
]
"""ScienceWorld's names for its tasks."""
_ALL_EXPERIMENTS: tuple[ScienceworldTask, ...] = ScienceworldTask.__args__


class ScienceworldRecipe(BaseEnvironment):
    """ScienceWorld: school science experiments in text (arXiv 2203.07540), in Java."""

    name: Literal["scienceworld"] = "scienceworld"
    families: tuple[ScienceworldTask, ...] = Field(default=_ALL_EXPERIMENTS, min_length=1)
    """Tasks by ScienceWorld's names, assigned in turn; the gate checks each."""
    easy: bool = True
    """True to use ScienceWorld's simplifications: doors are open, and the agent can teleport."""
    num_train_tasks: int = Field(default=120, ge=2)
    """Tasks for logs and training. Every family has four; some have hundreds."""
    num_valid_tasks: int = Field(default=60, ge=2)
    """Tasks for calibration during training, from ScienceWorld's split `dev`."""
    num_test_tasks: int = Field(default=90, ge=2)
    """Held-out tasks of the test split: evaluated and reported, never trained or tuned on."""
    max_steps: int = Field(default=60, ge=1)
    """Maximum number of steps per episode."""


class LogsRecipe(BaseEnvironment):
    """Logs of an environment that is not here (`ingest.path`): tasks and first states are those of the logged episodes.

    Nothing is played for real: experience model and policy are judged on logged episodes that are held out.
    """

    can_be_played: ClassVar[bool] = False
    name: Literal["logs"] = "logs"
    valid_share: Share = 0.1
    """Share of the logged tasks that is held out for calibration during training. A task stays in its split when the
    log grows."""
    test_share: Share = 0.2
    """Share of the logged tasks that is held out for the report."""
    num_train_tasks: int = Field(default=200, ge=2)
    """Number of logged tasks to learn from, as far as it is known; only `dreamgym check` reckons with it."""
    num_valid_tasks: int = Field(default=80, ge=2)
    """Maximum number of held-out tasks that are dreamt for calibration."""
    num_test_tasks: int = Field(default=400, ge=2)
    """Maximum number of held-out tasks that are dreamt for the report."""
    max_steps: int = Field(default=30, ge=1)
    """Maximum number of steps per dreamt episode."""

    @model_validator(mode="after")
    def _some_tasks_are_learnt_from(self) -> Self:
        if not self.valid_share or not self.test_share or self.valid_share + self.test_share >= 1:
            raise ValueError(
                "environment.valid_share and environment.test_share must be above 0, and together below 1: the rest of the "
                "logged tasks is learnt from"
            )
        return self


class PluginRecipe(BaseEnvironment):
    """An environment from another package: an entry point of the group `dreamgym.environments`."""

    families: tuple[str, ...] = Field(default=("default",), min_length=1)
    """Families of tasks. Tasks are assigned to them in turn, and the gate checks each family."""
    options: dict[str, Any] = Field(default={})
    """Further options, passed to the environment."""
    package_version: str = ""
    """Version of the package that provides it, filled in. If a recipe gives one, no other version is accepted."""

    @model_validator(mode="before")
    @classmethod
    def _pinned_to_what_is_installed(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        point = entry_point(given["name"])
        there = point.dist.version if point.dist else ""
        wanted = given.get("package_version") or there
        if wanted != there:
            raise ValueError(f"environment {given['name']!r} is wanted from version {wanted}, and {there} is installed")
        return {**given, "package_version": there}


def entry_point(name: str) -> EntryPoint:
    """Return the entry point of an environment that a package provides.

    Raises:
        ValueError: no installed package provides it.
    """
    points = entry_points(group=_PLUGINS)
    if name not in points.names:
        known = ", ".join(sorted({*BUILT_IN, *points.names}))
        raise ValueError(f"environment {name!r} is not known: there are {known}")
    return points[name]


_PLUGINS = "dreamgym.environments"
BUILT_IN = ("textworld-cooking", "alfworld", "webshop", "miniwob", "scienceworld", "logs")


def _kind_of(environment: Any) -> str:
    name = environment.get("name") if isinstance(environment, dict) else getattr(environment, "name", None)
    return "plugin" if name and name not in BUILT_IN else name or BUILT_IN[0]


EnvironmentRecipe = Annotated[
    Annotated[CookingRecipe, Tag("textworld-cooking")]
    | Annotated[AlfworldRecipe, Tag("alfworld")]
    | Annotated[WebshopRecipe, Tag("webshop")]
    | Annotated[MiniwobRecipe, Tag("miniwob")]
    | Annotated[ScienceworldRecipe, Tag("scienceworld")]
    | Annotated[LogsRecipe, Tag("logs")]
    | Annotated[PluginRecipe, Tag("plugin")],
    Discriminator(_kind_of),
]
"""The real environment and its tasks, selected by `name`; by default, TextWorld's cooking games."""
