"""The command line as tests call it: a process of its own on a home of its own, and recipes that take seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).with_name("dreamgym")

TOY = (
    "environment.num_train_tasks=16",
    "environment.num_valid_tasks=4",
    "environment.num_test_tasks=8",
    "ingest.episodes_per_task=2",
    "experience.num_refit_episodes=6",
    "start.num_demonstrations=6",
    "start.sft.epochs=2",
    "dream.num_rounds=2",
    "dream.calibrate_every=1",
    "grpo.groups_per_round=4",
    "grpo.group_size=4",
    "real.num_rounds=1",
)
"""It learns nothing, but goes through every stage."""

SMALLER = (
    "environment.num_train_tasks=4",
    "environment.num_valid_tasks=2",
    "environment.num_test_tasks=3",
    "environment.max_steps=5",
    "experience.num_refit_episodes=2",
    "experience.max_new_tokens=24",
    "start.num_demonstrations=2",
    "dream.num_rounds=1",
    "grpo.groups_per_round=2",
)
"""Than the toy: for long states, or slow environments."""

LENIENT_GATE = (
    "gate.margin=1",
    "gate.false_promotion_rate=1",
    "gate.min_outcome_agreement=0",
    "gate.max_dream_real_gap=1",
    "gate.family_margin=1",
)
"""It lets everything through."""


def environment(home: Path) -> dict[str, str]:
    """Of a command on this home; one thread, since others share the cores."""
    return {**os.environ, "DREAMGYM_HOME": str(home), "DREAMGYM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def dreamgym(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Call it, with more settings if given, and wait."""
    told = {**environment(home), **settings}
    return subprocess.run([COMMAND, *arguments], env=told, capture_output=True, text=True, timeout=1800, check=False)


def changed(*changes: str) -> list[str]:
    """Arguments that change a recipe."""
    return [part for change in changes for part in ("--set", change)]


def cycle_of(home: Path, recipe: str, changes: tuple[str, ...], **settings: str) -> subprocess.CompletedProcess[str]:
    """A whole cycle, that went well."""
    done = dreamgym(home, "run", recipe, *changed(*changes), "--json", **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def lineage_of(home: Path, recipe: str, changes: tuple[str, ...], **settings: str) -> set[str]:
    """What a whole cycle made."""
    return set(json.loads(cycle_of(home, recipe, changes, **settings).stdout)["lineage"])
