"""Measure an experience model on logged episodes that it was not fitted to.

in:  the experience model, the experience it may retrieve, held-out logged episodes
out: one-step fidelity beside two baselines with intervals, and agreement of outcomes where it replays logged actions
"""

from collections.abc import Sequence
from dataclasses import replace

from infra.context import run_context
from models.examples.supervised import situations_of
from models.experience.experience_model import Dream, ExperienceModel
from models.measurement.agreement import Outcomes
from models.measurement.calibration import failed, replay
from models.measurement.fidelity import step_agreement
from models.measurement.logged_steps import gain_over, scores
from models.retrieval.replay_index import IndexedTransition, ReplayIndex
from models.text.prompts import TransitionQuery
from schemas.ports import Encoder
from schemas.recipes.recipe import PlayRecipe
from schemas.records import Reference, Trajectory
from schemas.runs import BASELINES
from tasks.data.retrieval_index import encoder_of, vectors_of
from tasks.data.rows import trajectory_id
from tasks.playing.play import open_experience_model
from tasks.running.artifacts import get_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task


@versioned_task
def measure_on_logs(
    experience_model: Reference, experience: list[Reference], held_out: Reference, recipe: PlayRecipe
) -> dict[str, float]:
    """Return fidelity on held-out logged steps, gains over both baselines, and agreement with logged outcomes.

    Returns:
        The metrics of models/measurement/fidelity.py; next_state_f1 of the model, of a state that stays as it is
        (unchanged) and of the nearest known transition (neighbour), the model's gain over each with low and high;
        outcome_agreement and outcome_kappa of logged actions replayed in the dream, num_replayed, num_broken.
    """
    use_threads()
    episodes = [one for one in get_trajectories(held_out) if not one.failure]
    model = open_experience_model(experience_model, experience, recipe, recipe.seed)
    encoder = encoder_of(recipe.retrieval.encoder, recipe.retrieval.revision)
    with run_context().display.stage("fidelity"):
        situations = [one for episode in episodes for one in _situations(episode, recipe)]
        steps = _one_step(model, situations, episodes, _nearest(situations, experience, encoder), encoder)
    with run_context().display.stage("logged actions"):
        return steps | _replayed(model, episodes)


def _situations(episode: Trajectory, recipe: PlayRecipe) -> list[TransitionQuery]:
    own = trajectory_id(episode)
    return [replace(one, trajectory_id=own) for one in situations_of(episode, recipe.experience)]


def _one_step(
    model: ExperienceModel,
    situations: Sequence[TransitionQuery],
    episodes: Sequence[Trajectory],
    nearest: Sequence[str],
    encoder: Encoder,
) -> dict[str, float]:
    """Return the agreement of predictions with logged steps, beside predictions that need no model."""
    truth = [turn.step for episode in episodes for turn in episode.turns]
    predicted = model.predict(situations)
    metrics = step_agreement(predicted, truth, encoder)
    wanted, named = [step.state for step in truth], [one.trajectory_id for one in situations]
    mine = scores([step.state for step in predicted], wanted)
    metrics["next_state_f1"] = sum(mine) / len(mine)
    unchanged = [one.state for one in situations]
    for name, states in zip(BASELINES, (unchanged, nearest), strict=True):
        its = scores(states, wanted)
        gain = gain_over(mine, its, named)
        metrics |= {f"{name}_f1": sum(its) / len(its), f"gain_over_{name}": gain.mean}
        metrics |= {f"gain_over_{name}_low": gain.low, f"gain_over_{name}_high": gain.high}
    return metrics


def _nearest(situations: Sequence[TransitionQuery], experience: list[Reference], encoder: Encoder) -> list[str]:
    """Return the next state of the known transition that is nearest to each situation."""
    index = ReplayIndex(encoder)
    turns = [(one, turn) for one in get_trajectories(*experience) if not one.failure for turn in one.turns]
    index.add(vectors_of(turns, encoder), [IndexedTransition("", False, turn.step.state) for _, turn in turns])
    return [texts[0] if texts else "" for texts in index.retrieve(situations, 1)]


def _replayed(model: ExperienceModel, episodes: Sequence[Trajectory]) -> dict[str, float]:
    """Return how often logged actions end in the dream as they did in the log; broken dreams are counted apart."""
    asked = [replace(one, task=one.task_as_it_began) for one in episodes]
    replays = replay(asked, Dream(model))
    whole = [(one, steps) for one, steps in zip(episodes, replays, strict=True) if not failed(steps)]
    outcomes = Outcomes.count((any(step.success for step in steps), one.success) for one, steps in whole)
    return {
        "outcome_agreement": outcomes.agreement,
        "outcome_kappa": outcomes.kappa,
        "num_replayed": float(len(whole)),
        "num_broken": float(len(episodes) - len(whole)),
        "logged_success": sum(one.success for one in episodes) / len(episodes),
    }
