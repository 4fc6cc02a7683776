"""Pre-train the small backbone that ships with the project, for hours, on cooking games that no evaluation uses.

The games come from seeds above a million, and every food has an invented name, so that no food and no
game of any evaluation is in the corpus. The behaviour is an expert that errs at least three times in
ten, so the backbone knows the grammar of the environment and not how to win.
"""

import itertools
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from infra.environments.cooking.annotator import FactsAnnotator
from infra.environments.cooking.environment import CookingEnvironment
from models.examples.supervised import experience_example, language_example, situations_of, variation_example
from models.experience.plain_experience import PlainExperience
from models.network.language_model import LanguageModel, load_model, new_tiny_model
from models.network.tokenizer import train_tokenizer
from models.rollout.behaviour_policies import collect
from models.text.prompts import CONTINUE, FAILURE, SUCCESS, PromptFormat, demonstration_text
from models.text.renaming import SYLLABLES, invented_names, name_pieces, renamed, to_invented_names
from models.training.sft import Example, SftProgress, batches, fit
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import Trajectory, Turn
from schemas.state_text import changes_between
from tasks.backbones.fetch_backbone import write_digests
from tasks.data.annotate import with_reasoning

FIRST_SEED = 1_000_000
"""First seed of the corpus; games of every recipe and every evaluation have lower seeds."""

_SETTINGS = {"recipe": 1, "take": 1, "go": 1, "open": False, "cook": True, "cut": True}
FAMILIES = {
    "one": _SETTINGS,
    "one again": _SETTINGS,
    "one closed": {**_SETTINGS, "open": True},
    "two": {**_SETTINGS, "recipe": 2, "take": 2},
    "two closed": {**_SETTINGS, "recipe": 2, "take": 2, "open": True},
    "one rooms": {**_SETTINGS, "go": 6, "open": True},
    "two rooms": {**_SETTINGS, "recipe": 2, "take": 2, "go": 6, "open": True},
}
_NOISE = (0.3, 0.5, 0.8)
_EPISODES_PER_GAME = 3
_MAX_STEPS = 16
_MAX_POLICY_TURNS = 6
_SHOWN = ExperienceRecipe(history_length=1)
_RARE_COPIES = 3
"""Number of copies of a transition that ends the episode."""


@dataclass(frozen=True)
class Leg:
    """Part of the training with its own names and its own schedule."""

    num_updates: int
    learning_rate: float
    names_from_vocabulary: bool
    """True for names of any pieces of the vocabulary; else of syllables, which are easier to learn to copy first."""
    seed: int
    tokens_per_update: int = 2_048
    """Batch size in tokens. Batches are small at first, so that copying forms sooner."""
    planned_updates: int = 0
    """Number of updates that the learning-rate schedule assumes; 0: num_updates."""


@dataclass(frozen=True)
class BackbonePlan:
    """Size of the backbone, and the legs of its training."""

    hidden_size: int = 128
    num_layers: int = 4
    num_heads: int = 4
    vocab_size: int = 1024
    legs: tuple[Leg, ...] = (
        Leg(7_500, 2e-3, False, 0, planned_updates=20_000),
        Leg(9_500, 1.5e-3, True, 1, planned_updates=14_000),
        Leg(5_000, 1.2e-3, True, 2),
        Leg(9_000, 8e-4, True, 3, tokens_per_update=4_096),
    )


def corpus(seed: int, pieces: Sequence[str] = SYLLABLES) -> Iterator[list[Trajectory]]:
    """Yield annotated and renamed episodes, game by game, without end; names consist of these pieces."""
    environment, annotator = CookingEnvironment(FAMILIES), FactsAnnotator()
    rng = random.Random(seed)
    for number in itertools.count():
        first_seed = FIRST_SEED + seed * 10_000_000 + number // len(FAMILIES)
        task = environment.tasks("train", len(FAMILIES), first_seed)[number % len(FAMILIES)]
        noise = rng.sample(_NOISE, k=_EPISODES_PER_GAME)
        episodes = collect(environment, [task] * _EPISODES_PER_GAME, noise, number, _MAX_STEPS)
        traces = annotator.annotate(episodes)
        new = to_invented_names(environment.names(task), episodes, rng, pieces)
        yield [renamed(with_reasoning(episode, trace), new) for episode, trace in zip(episodes, traces, strict=True)]


def game_examples(
    format: PromptFormat, episodes: list[Trajectory], previous: list[Trajectory], rng: random.Random
) -> list[Example]:
    """Return all examples from the episodes of one game."""
    plain = PlainExperience(format)
    examples = [language_example(format, episode, _MAX_POLICY_TURNS) for episode in rng.sample(episodes, 2)]
    for episode in episodes:
        others = [turn for other in episodes if other is not episode for turn in other.turns]
        for i, situation in enumerate(situations_of(episode, _SHOWN)):
            shown = tuple(_neighbour(situation.action, others, rng))
            example = experience_example(plain, replace(situation, demonstrations=shown), episode, i)
            examples += [example] * (_RARE_COPIES if episode.turns[i].step.done else 1)
    if previous and rng.random() < 0.5:
        first, other = previous[0], episodes[0]
        examples.append(variation_example(plain, first.task, first.turns[0].state, other.task, other.turns[0].state))
    return examples


def _neighbour(action: str, turns: list[Turn], rng: random.Random) -> list[str]:
    """Return a demonstration as retrieval would: the same action in another episode, else any; sometimes none."""
    if rng.random() < 0.2:
        return []
    same = [turn for turn in turns if turn.action == action]
    turn = rng.choice(same or turns)
    return [demonstration_text(turn.action, changes_between(turn.state, turn.step.state))]


def batch_stream(format: PromptFormat, leg: Leg, games_per_pool: int = 40) -> Iterator[list[Example]]:
    """Yield batches of similar length, drawn from pools of many games."""
    rng = random.Random(leg.seed)
    pieces = name_pieces(format.tokenizer.get_vocab()) if leg.names_from_vocabulary else SYLLABLES
    games = corpus(leg.seed, pieces)
    previous: dict[str, list[Trajectory]] = {}
    while True:
        pool: list[Example] = []
        for episodes in itertools.islice(games, games_per_pool):
            family = episodes[0].task.family
            pool += game_examples(format, episodes, previous.get(family, []), rng)
            previous[family] = episodes
        yield from batches(pool, leg.tokens_per_update, rng)


def new_backbone(plan: BackbonePlan) -> LanguageModel:
    """Return a new tokenizer with an untrained network."""
    return new_tiny_model(
        train_tokenizer(_tokenizer_texts(), plan.vocab_size),
        hidden_size=plan.hidden_size,
        num_layers=plan.num_layers,
        num_heads=plan.num_heads,
        max_positions=4096,
        seed=0,
    )


def train_leg(model: LanguageModel, leg: Leg, folder: Path) -> None:
    """Train a model in place, and save it to the folder every 500 updates."""
    started = time.monotonic()
    losses: list[float] = []

    def report(progress: SftProgress) -> None:
        losses.append(progress.loss)
        if progress.update % 100 == 0:
            minutes = (time.monotonic() - started) / 60
            print(
                f"{progress.update}/{leg.num_updates} loss {sum(losses[-100:]) / 100:.4f} {minutes:.1f} min", flush=True
            )
        if progress.update % 500 == 0:
            model.save(folder)

    planned = leg.planned_updates or leg.num_updates
    stream = batch_stream(model.format, leg)
    fit(model.network, itertools.islice(stream, leg.num_updates), planned, leg.learning_rate, report)
    model.save(folder)


def _tokenizer_texts() -> Iterator[str]:
    """Yield one turn of each of many games, for the grammar, and many names that come once."""
    rng = random.Random(0)
    for episodes in itertools.islice(corpus(7), 400):
        turn = rng.choice(episodes[0].turns)
        yield from (f" {episodes[0].task.instruction}", f"\n{turn.state}", f" {turn.action}", f" {turn.step.reasoning}")
        yield from (CONTINUE, SUCCESS, FAILURE)
    for _ in range(3000):
        yield from (f" {name}" for name in invented_names("ab", rng).values())


def pretrain(folder: Path, plan: BackbonePlan, first_leg: int = 0) -> None:
    """Train a backbone in a folder; a later first leg goes on from the folder's checkpoint."""
    model = load_model(folder) if first_leg else new_backbone(plan)
    for leg in plan.legs[first_leg:]:
        train_leg(model, leg, folder)
    write_digests(folder)


if __name__ == "__main__":
    pretrain(Path(sys.argv[1]), BackbonePlan(), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
