"""Where ALFWorld's games are for tests: $ALFWORLD_DATA, or packed in shared/data/alfworld beside the checkout."""

import os
from pathlib import Path

import pytest

_PLACES = (Path(__file__).parents[1] / "shared/data/alfworld", Path(__file__).parents[2] / "shared/data/alfworld")


def place_of_games() -> Path | None:
    """The folder of the games, if they are anywhere."""
    named = [Path(os.environ["ALFWORLD_DATA"])] if "ALFWORLD_DATA" in os.environ else []
    for place in (*named, *_PLACES):
        if (place / "valid_seen.jsonl.xz").exists() or (place / "json_2.1.1").exists():
            return place
    return None


def require_games(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the games, which ALFWORLD_DATA then names; the test is skipped if there are none."""
    place = place_of_games()
    if place is None:
        pytest.skip("ALFWorld's games are not here: run alfworld-download, or set ALFWORLD_DATA")
    monkeypatch.setenv("ALFWORLD_DATA", str(place))
    return place
