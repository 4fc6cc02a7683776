"""Run a fine-tuning in this process; print the steps that it logged, and the digest of its result."""

import json

from rich.console import Console

from infra.context import RunContext, set_run_context
from infra.progress.progress import Display
from infra.tracking.worker_metrics import Notes
from models.network.language_model import load_model
from models.training.sft import Example
from schemas.recipes.networks import SftRecipe, TrainingRecipe
from tasks.backbones.find_backbone import SHIPPED
from tasks.learning.run_training import fine_tuned
from tasks.running.artifacts import put_model

NUM_UPDATES = 90

if __name__ == "__main__":
    notes = Notes()
    set_run_context(RunContext("cycle", "recipe", notes, Display(Console(quiet=True))))
    examples = [Example.of((list(range(1, 6 + n)), False), (list(range(20, 24 + 3 * n)), True)) for n in range(12)]
    epochs = NUM_UPDATES * 256 / sum(len(one.ids) for one in examples)
    backbone = put_model(load_model(SHIPPED / "textworld-tiny"))
    sft = SftRecipe(epochs=epochs, learning_rate=1e-3, tokens_per_update=256)
    trained = fine_tuned(backbone, examples, sft, TrainingRecipe(), 0, "experience model")
    print(json.dumps({"steps": [step for _, _, step in notes.entries], "digest": put_model(trained, backbone).sha256}))
