"""Assignment of ALFWorld's games to our splits, dealt to the families in turn while they have any left.

Train and valid tasks are both ALFWorld train games: valid ones from the end of each family's list, train ones from the
beginning of the rest. Test tasks come from a split of their own.
"""

from collections.abc import Mapping, Sequence

from infra.environments.alfworld.files import GameFiles
from schemas.recipes.environments import AlfworldRecipe


def assign_splits(recipe: AlfworldRecipe, files: GameFiles, split: str) -> list[tuple[str, str]]:
    """Return family and name of every game of one of our splits, in the order of its tasks."""
    games = {family: _solvable(files, family) for family in recipe.families}
    if split == "test":
        return _in_turn(games)
    kept_back = _in_turn({family: names[::-1] for family, names in games.items()})[: recipe.num_valid_tasks]
    if split == "valid":
        return kept_back
    left = set(kept_back)
    return [one for one in _in_turn(games) if one not in left]


def _solvable(files: GameFiles, family: str) -> list[str]:
    return [name for name in files.names if name.startswith(f"{family}-") and files.is_solvable(name)]


def _in_turn(games: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    longest = max(map(len, games.values()))
    return [(family, names[i]) for i in range(longest) for family, names in games.items() if i < len(names)]
