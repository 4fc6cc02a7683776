"""What decides whether a versioned task runs again."""

import pytest

from schemas.errors import DreamGymError
from schemas.plain import plain, references_in, restored
from schemas.recipe import ExperienceRecipe, GrpoRecipe, Recipe, StartRecipe
from schemas.records import Reference
from tasks.versioned import cache_key, versioned_task

MODEL = Reference("folder/a", "a" * 64, "model", {"round": 1})


def key(name="train", version=1, code="c", **inputs) -> str:
    return cache_key(name, version, code, {"policy": MODEL, "recipe": GrpoRecipe(), "round": 0} | inputs)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "dream"},
        {"version": 2},
        {"code": "d"},
        {"round": 1},
        {"recipe": GrpoRecipe(group_size=4)},
        {"policy": Reference("folder/a", "b" * 64, "model")},
        {"more": [MODEL]},
    ],
)
def test_whatever_decides_a_result_changes_the_key(change):
    assert key(**change) != key()


def test_where_an_input_lies_and_what_was_noted_of_it_changes_nothing():
    assert key(policy=Reference("s3://elsewhere", "a" * 64, "model", {"round": 7})) == key()


def test_an_input_without_a_digest_is_an_error_and_not_a_silent_miss():
    @versioned_task
    def add(numbers: object) -> int:
        return 1

    with pytest.raises(DreamGymError, match="was given a set, which has no digest"):
        add({1, 2})


def test_references_survive_as_json_and_are_all_found():
    made = {"policy": MODEL, "several": [MODEL, {"deep": MODEL}], "count": 3}
    assert restored(plain(made)) == made
    assert list(references_in(made)) == [MODEL] * 3


def test_real_episodes_are_not_played_anew_because_the_experience_model_is_fitted_otherwise():
    recipe = Recipe(name="a")
    longer = recipe.model_copy(update={"experience": ExperienceRecipe(num_votes=3)})
    assert longer.real_play == recipe.real_play
    assert longer.play != recipe.play
    otherwise = recipe.model_copy(update={"start": StartRecipe(history_length=5)})
    assert otherwise.real_play != recipe.real_play
