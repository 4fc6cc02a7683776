"""ALFWorld's games for tests: in $ALFWORLD_DATA, or packed in shared/data/alfworld in or next to the checkout."""

import os
from pathlib import Path

import pytest

_PLACES = (Path(__file__).parents[1] / "shared/data/alfworld", Path(__file__).parents[2] / "shared/data/alfworld")


def place_of_games() -> Path | None:
    """Return the folder of the games, or None if there are none."""
    named = [Path(os.environ["ALFWORLD_DATA"])] if "ALFWORLD_DATA" in os.environ else []
    for place in (*named, *_PLACES):
        if (place / "valid_seen.jsonl.xz").exists() or (place / "json_2.1.1").exists():
            return place
    return None


def require_games(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the games and set ALFWORLD_DATA to it; skip the test if there are none."""
    place = place_of_games()
    if place is None:
        pytest.skip("ALFWorld's games are not here: run alfworld-download, or set ALFWORLD_DATA")
    monkeypatch.setenv("ALFWORLD_DATA", str(place))
    return place
