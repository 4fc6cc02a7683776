"""Fidelity of the experience model's predictions of held-out real transitions, given the true state each time."""

from collections.abc import Sequence

import numpy as np

from models.experience.experience_model import ExperienceModel
from models.text.prompts import TransitionQuery
from schemas.ports import Encoder
from schemas.records import Step


def fidelity(
    model: ExperienceModel, situations: Sequence[TransitionQuery], truth: Sequence[Step], encoder: Encoder
) -> dict[str, float]:
    """Measure the teacher-forced agreement of a model's predictions with what really happened; see step_agreement."""
    return step_agreement(model.predict(situations), truth, encoder)


def step_agreement(predicted: Sequence[Step], truth: Sequence[Step], encoder: Encoder) -> dict[str, float]:
    """Measure the agreement of predicted steps with real ones.

    Returns:
        num_transitions, state_exact, state_similarity (cosine of encoded states), unparsable, and precision and
        recall of done, of success and of loss (done without success); an unparsable prediction counts as none of
        these. A rate without cases is left out.
    """
    vectors = [encoder.encode([step.state for step in steps]) for steps in (predicted, truth)]
    metrics = {
        "num_transitions": float(len(truth)),
        "state_exact": float(np.mean([p.state == t.state for p, t in zip(predicted, truth, strict=True)])),
        "state_similarity": float(np.mean(np.sum(vectors[0] * vectors[1], axis=1))),
        "unparsable": float(np.mean([p.failure is not None for p in predicted])),
    }
    kinds = {
        "done": lambda step: step.done and not step.failure,
        "success": lambda step: step.success,
        "loss": lambda step: step.done and not step.success and not step.failure,
    }
    for name, holds in kinds.items():
        metrics |= _rates(name, [holds(p) for p in predicted], [holds(t) for t in truth])
    return metrics


def _rates(name: str, predicted: Sequence[bool], truth: Sequence[bool]) -> dict[str, float]:
    """Return precision and recall of a yes-or-no prediction, each only if it has cases."""
    hits = sum(p and t for p, t in zip(predicted, truth, strict=True))
    rates: dict[str, float] = {}
    if sum(predicted):
        rates[f"{name}_precision"] = hits / sum(predicted)
    if sum(truth):
        rates[f"{name}_recall"] = hits / sum(truth)
    return rates
