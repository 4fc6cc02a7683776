"""Tiny recipes of real environments, with models trained on their logs alone: one run of each, on a few small games."""

import json

import pytest

from tests.alfworld import require_games
from tests.command_line import LENIENT_GATE, SMALLER, TOY, cycle_of, lineage_of
from tests.java import needs_java

FROM_SCRATCH = (
    *TOY,
    *LENIENT_GATE,
    *SMALLER,
    "backbone.scratch.hidden_size=32",
    "backbone.scratch.num_layers=1",
    "backbone.scratch.vocab_size=512",
    "backbone.scratch.sft.epochs=1",
)
WHOLE = {"backbone", "start", "experience_model", "dream", "sim_to_real"}


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_alfworld_tiny_goes_through_a_whole_cycle(tmp_path, monkeypatch):
    require_games(monkeypatch)
    families = 'environment.families=["look_at_obj_in_light"]'
    steps = "environment.max_steps=30"  # or no logged episode is long enough to win
    done = cycle_of(tmp_path, "alfworld-tiny", (*FROM_SCRATCH, families, steps))
    assert set(json.loads(done.stdout)["lineage"]) >= WHOLE
    assert "experience.max_new_tokens = 24 cuts off over 1% of the predictions" in done.stderr


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
@needs_java
def test_scienceworld_tiny_goes_through_a_whole_cycle(tmp_path):
    steps = "environment.max_steps=12"  # or no logged episode is long enough to win
    assert lineage_of(tmp_path, "scienceworld-tiny", (*FROM_SCRATCH, steps)) >= WHOLE
