"""Dreams in parallel with training: rounds are prefetched, episodes move on to newer weights, staleness is bounded."""

import json

import pytest

from infra.settings import Settings
from infra.storage.replay_store import ReplayStore
from tests.command_line import LENIENT_GATE, TOY, changed, dreamgym_here

ROUNDS, STALENESS = 3, 1


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_a_cycle_dreams_ahead_and_every_row_names_the_weights_that_acted(tmp_path):
    asynchronous = changed(
        *TOY,
        *LENIENT_GATE,
        f"dream.num_rounds={ROUNDS}",
        f"dream.calibrate_every={ROUNDS}",
        f"dream.max_staleness={STALENESS}",
        "rl.loss.importance_correction=token",
        "start.num_demonstrations=12",
        "start.sft.epochs=16",  # some dreams are won and some lost on every processor, or nothing would be learnt
        "start.renamed_copies=1",
    )
    done = dreamgym_here(tmp_path, "run", "textworld-tiny", *asynchronous, "--only", "dream", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    rows = [row for row in ReplayStore(Settings(home=tmp_path)).read("transitions") if row["origin"] == "dream"]
    versions = [{row["policy"] for row in rows if row["round"] == round} for round in range(ROUNDS)]
    assert versions[0] == {summary["lineage"]["start"]["__reference__"]["sha256"]}
    assert len(set.union(*versions)) > 1, "a later round goes on with what training made"
    assert not versions[-1] & versions[0], "the last round begins after the first was trained on, at the latest"


@pytest.mark.e2e
def test_stale_rollouts_without_a_correction_are_refused(tmp_path):
    refused = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed("dream.max_staleness=1"))
    assert refused.returncode == 2
    assert "dream.max_staleness needs a loss that corrects for it" in refused.stderr
