"""Environment whose package is missing: it says which one, and how to get it."""

import sys

import pytest

from infra.environments.by_name import open_environment
from schemas.errors import InputError
from schemas.recipes.environments import AlfworldRecipe, MiniwobRecipe, PluginRecipe, ScienceworldRecipe

_WEBARENA = "browsergym.webarena:browsergym/webarena.{number}"


@pytest.mark.parametrize(
    ("recipe", "missing", "told"),
    [
        (AlfworldRecipe(num_test_tasks=7), "alfworld", r"pip install 'dreamgym\[alfworld\]'"),
        (MiniwobRecipe(num_test_tasks=7), "miniwob", r"pip install 'dreamgym\[miniwob\]'"),
        (MiniwobRecipe(num_test_tasks=7), "selenium", r"pip install 'dreamgym\[miniwob\]'"),
        (ScienceworldRecipe(num_test_tasks=7), "scienceworld", r"pip install 'dreamgym\[scienceworld\]'"),
        (
            PluginRecipe(name="gymnasium", options={"id": "gone:Gone-v0", "instruction": "go"}),
            "gymnasium",
            r"pip install 'dreamgym\[gymnasium\]'",
        ),
        (
            PluginRecipe(name="gymnasium", options={"id": "gone.deep:Gone-v0", "instruction": "go"}),
            "gone",
            "package 'gone'",
        ),
        (
            PluginRecipe(name="browsergym", options={"id": _WEBARENA, "first": {"train": 0, "valid": 1, "test": 2}}),
            "browsergym",
            "package 'browsergym', which environment.options.id names",
        ),
    ],
)
def test_a_package_that_is_not_here_is_named(recipe, missing, told, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=told):
        open_environment(recipe)
