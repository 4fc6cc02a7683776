"""Judge dreamt predictions of a run by the rubric of the paper (C.4).

in:  dreams of the run, dreams with their real replays, a judge
out: mean scores with intervals, answers that could not be read, agreement with the replays; all scores as an artifact
"""

from collections.abc import Sequence
from typing import Any

from infra.context import objects, run_context
from models.measurement.rubric import Prediction, Scores, read_scores, rubric_question
from models.measurement.rubric_summary import mean_scores, replay_agreement
from models.rollout.chat_network import ChatNetwork
from schemas.chat import ChatModel
from schemas.recipes.networks import EngineRecipe, ExperienceRecipe
from schemas.records import Reference
from tasks.judging.dreamt_predictions import DreamtPrediction, drawn_predictions, replayed_predictions
from tasks.running.artifacts import get_frozen_model
from tasks.running.device import use_threads
from tasks.running.engines import open_engine
from tasks.running.predictors import endpoint_model_of, open_endpoint
from tasks.running.versioned import versioned_task

_MAX_NEW_TOKENS = 512
"""Room for a thought and four scores."""


@versioned_task
def judge_predictions(
    dreams: list[Reference],
    replayed: list[Reference],
    judge: Reference,
    experience: ExperienceRecipe,
    engine: EngineRecipe,
    num_transitions: int,
    seed: int,
) -> dict[str, Any]:
    """Return mean scores of dreamt predictions, and whether the judge scores those higher that hold for real.

    Args:
        dreams: Dreamt trajectories, from which the predictions are drawn.
        replayed: Dreamt trajectories beside their real replays, from which as many are judged as well, at most. They do
            not count in the means: they were chosen to show errors.
        judge: Experience model of ours with a chat template, or a model at the endpoint.
        experience: Section with the limit of a prompt.
        engine: Section of the engine that samples from a model of ours.
        num_transitions: Number of predictions to draw; the paper judges 100.
        seed: Seed of the draw.
    """
    use_threads()
    drawn = drawn_predictions(dreams, num_transitions, seed)
    beside = replayed_predictions(replayed, num_transitions, seed)
    with run_context().display.stage("rubric"):
        scores = _scores(_open_judge(judge, experience, engine, seed), [*drawn, *beside])
    whole = [one for one in drawn if not one.is_broken]
    judged = [found for one in whole if (found := scores[one.prediction])]
    known = [(found, one.held) for one in beside if (found := scores[one.prediction]) and one.held is not None]
    return {
        "num_drawn": len(drawn),
        "num_broken": len(drawn) - len(whole),
        "num_judged": len(judged),
        "num_unreadable": len(whole) - len(judged),
        "scores": mean_scores(judged),
        "replays": {**replay_agreement(known), "num_unreadable": len(beside) - len(known)},
        "judged": objects().put_json([*_rows(drawn, scores), *_rows(beside, scores)], "rubric scores"),
    }


def _scores(judge: ChatModel, predictions: Sequence[DreamtPrediction]) -> dict[Prediction, Scores | None]:
    """Return the scores by prediction; None where the answer cannot be read. Equal predictions are judged once."""
    asked = list(dict.fromkeys(one.prediction for one in predictions if not one.is_broken))
    questions = [rubric_question(one) for one in asked]
    answers = judge.answer(questions, lambda _, text: read_scores(text) is not None)
    return {one: read_scores(text) for one, text in zip(asked, answers, strict=True)}


def _open_judge(judge: Reference, experience: ExperienceRecipe, engine: EngineRecipe, seed: int) -> ChatModel:
    if name := endpoint_model_of(judge):
        return open_endpoint(name)
    model = get_frozen_model(judge)
    room = model.network.config.max_position_embeddings - _MAX_NEW_TOKENS
    longest = min(experience.max_prompt_tokens, room)
    sampler = open_engine("experience model", judge, engine, seed, experience.max_stream_tokens)
    return ChatNetwork(
        sampler, model.format, longest, _MAX_NEW_TOKENS, lambda limits: run_context().display.time.met("rubric", limits)
    )


def _rows(predictions: Sequence[DreamtPrediction], scores: dict[Prediction, Scores | None]) -> list[dict[str, Any]]:
    """Return one row per prediction: where it is, its scores, and whether it holds for real as far as that is known."""
    return [
        {
            "trajectory_id": one.trajectory_id,
            "turn": one.turn,
            "held": one.held,
            "broken": one.is_broken,
            "scores": scores.get(one.prediction),
        }
        for one in predictions
    ]
