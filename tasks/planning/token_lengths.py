"""Lengths of prompts and outputs in tokens, measured on a few episodes of an expert or of the log; else, their limits."""

from dataclasses import dataclass, replace

from infra.environments.by_name import open_environment
from models.examples.supervised import situations_of
from models.experience.experience_formats import open_experience_format
from models.retrieval.demonstrations import demonstration_of
from models.rollout.behaviour_policies import collect
from models.text.policies.policy_formats import open_policy_format
from models.text.prompts import PromptFormat
from schemas.recipes.recipe import Recipe
from schemas.records import Trajectory
from tasks.planning.logged import logged_episodes

_NUM_EPISODES = 4


@dataclass(frozen=True, slots=True)
class Lengths:
    """Longest prompts and outputs, in tokens."""

    turn_prompt: int
    """Prompt of the policy at one turn."""
    action: int
    situation: int
    """Prompt of the experience model, with demonstrations."""


def lengths(recipe: Recipe, format: PromptFormat) -> Lengths:
    """Return the longest prompts and actions in a few episodes of an expert or of the log, or the recipe's limits if there are none."""
    if recipe.ingest.played_by == "base":
        return Lengths(
            recipe.policy.prompt_budget, recipe.policy.max_answer_tokens, recipe.experience.max_prompt_tokens
        )
    policy, episodes = open_policy_format(format, recipe.policy), _episodes(recipe)
    moments = [policy.prompt(t.task, t.history(i), turn.state).ids for t in episodes for i, turn in enumerate(t.turns)]
    answer = max(len(policy.answer(action)) for t in episodes for action in t.actions)
    thought = recipe.policy.max_thought_tokens if recipe.policy.think != "off" else 0
    return Lengths(max(map(len, moments)), answer + thought, _longest_situation(recipe, format, episodes))


def _episodes(recipe: Recipe) -> list[Trajectory]:
    if not recipe.environment.can_be_played:
        return logged_episodes(recipe.ingest)[:_NUM_EPISODES]
    environment = open_environment(recipe.environment)
    tasks = environment.tasks("train", _NUM_EPISODES)
    return collect(environment, tasks, [0.0], recipe.seed, recipe.environment.max_steps)


def _longest_situation(recipe: Recipe, format: PromptFormat, episodes: list[Trajectory]) -> int:
    experience, form = open_experience_format(format, recipe.experience), recipe.retrieval.demonstrations
    shown = [demonstration_of(episode.task, turn, form) for episode in episodes for turn in episode.turns]
    demonstrations = (max(shown, key=len),) * recipe.retrieval.num_demonstrations
    situations = [s for t in episodes for s in situations_of(t, recipe.experience)]
    return max(len(experience.situation(replace(s, demonstrations=demonstrations)).ids) for s in situations)
