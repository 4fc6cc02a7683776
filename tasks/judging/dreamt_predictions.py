"""Predictions of the experience model in stored dreams: a draw of all, and those whose real replay is stored."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from models.measurement.one_step import compared_steps
from models.measurement.rubric import Prediction
from schemas.records import Reference, Trajectory
from tasks.data.rows import trajectory_id
from tasks.judging.replayed_samples import pairs_of
from tasks.running.artifacts import get_trajectories


@dataclass(frozen=True, slots=True)
class DreamtPrediction:
    """Prediction in a dreamt episode."""

    trajectory_id: str
    turn: int
    """Number of the turn, from 0 on."""
    prediction: Prediction
    is_broken: bool
    """True if the experience model wrote nothing that can be read, so that there is nothing to judge."""
    held: bool | None = None
    """Whether the real environment did the same from the same state; None where no replay is stored."""


def drawn_predictions(dreams: Sequence[Reference], count: int, seed: int) -> list[DreamtPrediction]:
    """Return up to count predictions, each turn of all dreams as likely as any other; broken ones are among them."""
    rng = random.Random(seed)
    places = ((rng.random(), number, *place) for number, place in enumerate(_places(dreams)))
    return [_prediction(episode, turn) for *_, episode, turn in nsmallest(count, places)]


def replayed_predictions(replayed: Sequence[Reference], count: int, seed: int) -> list[DreamtPrediction]:
    """Return up to count predictions beside what followed for real from the same state, drawn at random."""
    found: list[DreamtPrediction] = []
    for dreamt, replay in pairs_of(get_trajectories(*replayed)):
        compared = compared_steps(dreamt.turns, [turn.step for turn in replay.turns])
        for turn, (dream, real) in enumerate(compared):
            held = (dream.step.state, dream.step.done, dream.step.success) == (real.state, real.done, real.success)
            found.append(_prediction(dreamt, turn, held=held))
    return random.Random(seed).sample(found, min(count, len(found)))


def _places(dreams: Sequence[Reference]) -> Iterator[tuple[Trajectory, int]]:
    for reference in dreams:
        for episode in get_trajectories(reference):
            yield from ((episode, turn) for turn in range(len(episode.turns)))


def _prediction(episode: Trajectory, turn: int, *, held: bool | None = None) -> DreamtPrediction:
    is_broken = episode.turns[turn].step.failure is not None
    return DreamtPrediction(trajectory_id(episode), turn, Prediction.of(episode, turn), is_broken, held)
