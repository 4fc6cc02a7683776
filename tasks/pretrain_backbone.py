"""Pre-train the small backbone that ships with the project: hours of cooking games nobody evaluates on.

The games come from seeds above a million, and every food has an invented name, so that no food and no
game of any evaluation is in the corpus. The behaviour is an expert that errs at least three times in
ten, so the backbone knows the grammar of the environment and not how to win.
"""

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from infra.environments.textworld.annotator import CookingAnnotator
from infra.environments.textworld.environment import CookingEnvironment
from models.backbone import LanguageModel, new_tiny_model
from models.behaviours import collect
from models.examples import experience_example, language_example, situations_of, variation_example
from models.prompts import CONTINUE, FAILURE, SUCCESS, PromptFormat, demonstration_text
from models.renaming import invented_names, rename
from models.sft import Example, SftProgress, batches, fit
from models.vocabulary import train_tokenizer
from schemas.records import Trajectory, Turn
from schemas.state_text import changes_between

FIRST_SEED = 1_000_000
"""Games of every recipe and every evaluation have seeds below."""

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
_ONSETS = "b c d f g h j k l m n p r s t v w z ch sh br cr gr pl st tr".split()
_CODAS = ["", "", "", "n", "r", "l", "t", "s", "m", "ck", "p"]
PLAIN_WORDS = (
    "red orange yellow green blue purple white black brown grey small large fresh dry sweet bitter hot cold round "
    "flat soft hard bell block leg wing breast of the apron basket bottle bowl box brush bucket button candle card "
    "cart chain cloth coat coin cord cup curtain desk dish drum feather flag flute fork frame glass glove hammer hat "
    "helmet jar jug kettle key ladder lamp lantern leaf lid lock log map mat mirror mug nail needle net oar paper "
    "pebble pen pillow pin pipe plank plate pot purse ribbon ring rope rug ruler sack saddle scarf shell shoe "
    "sock spoon stick stone string thread ticket tool towel toy tray vase wagon wheel whistle wire yarn"
).split()
"""Words of invented names beside made-up ones: none of them names a food."""
SYLLABLES = [onset + vowel + coda for onset in _ONSETS for vowel in "aeiou" for coda in _CODAS]
_NOISE = (0.3, 0.5, 0.8)
_EPISODES_PER_GAME = 3
_MAX_STEPS = 16
_MAX_POLICY_TURNS = 6


@dataclass(frozen=True)
class BackbonePlan:
    """How large and how long."""

    hidden_size: int = 128
    num_layers: int = 4
    num_heads: int = 4
    vocab_size: int = 1024
    num_updates: int = 12_000
    tokens_per_update: int = 6_000
    learning_rate: float = 2e-3
    seed: int = 0


def corpus(seed: int) -> Iterator[list[Trajectory]]:
    """Annotated and renamed episodes, game by game, without end."""
    environment, annotator = CookingEnvironment(FAMILIES), CookingAnnotator()
    rng = random.Random(seed)
    for number in itertools.count():
        first_seed = FIRST_SEED + seed * 10_000_000 + number // len(FAMILIES)
        task = environment.tasks("train", len(FAMILIES), first_seed)[number % len(FAMILIES)]
        names = invented_names(environment.names(task), PLAIN_WORDS, SYLLABLES, rng)
        noise = rng.sample(_NOISE, k=_EPISODES_PER_GAME)
        episodes = collect(environment, [task] * _EPISODES_PER_GAME, noise, number, _MAX_STEPS)
        traces = annotator.annotate(episodes)
        yield [rename(annotated(episode, trace), names) for episode, trace in zip(episodes, traces, strict=True)]


def annotated(episode: Trajectory, traces: list[str]) -> Trajectory:
    """The episode with its reasoning traces filled in."""
    turns = [
        Turn(turn.state, turn.action, replace(turn.step, reasoning=trace))
        for turn, trace in zip(episode.turns, traces, strict=True)
    ]
    return replace(episode, turns=turns)


def game_examples(format: PromptFormat, episodes: list[Trajectory], previous: list[Trajectory], rng: random.Random) -> list[Example]:
    """All that is learnt from the episodes of one game."""
    examples = [language_example(format, episode, _MAX_POLICY_TURNS) for episode in rng.sample(episodes, 2)]
    for episode in episodes:
        others = [turn for other in episodes if other is not episode for turn in other.turns]
        for i, situation in enumerate(situations_of(episode, history_length=1)):
            shown = tuple(_neighbour(situation.action, others, rng))
            examples.append(experience_example(format, replace(situation, demonstrations=shown), episode, i))
    if previous and rng.random() < 0.5:
        first, other = previous[0], episodes[0]
        examples.append(
            variation_example(format, first.task, first.turns[0].state, other.task, other.turns[0].state)
        )
    return examples


def _neighbour(action: str, turns: list[Turn], rng: random.Random) -> list[str]:
    """What retrieval would show: the same action in another episode, else any; sometimes nothing."""
    if rng.random() < 0.2:
        return []
    same = [turn for turn in turns if turn.action == action]
    turn = rng.choice(same or turns)
    return [demonstration_text(turn.action, changes_between(turn.state, turn.step.state))]


def batch_stream(format: PromptFormat, plan: BackbonePlan, games_per_pool: int = 40) -> Iterator[list[Example]]:
    """Batches of similar length, drawn from pools of many games."""
    rng = random.Random(plan.seed)
    games = corpus(plan.seed)
    previous: dict[str, list[Trajectory]] = {}
    while True:
        pool: list[Example] = []
        for episodes in itertools.islice(games, games_per_pool):
            family = episodes[0].task.family
            pool += game_examples(format, episodes, previous.get(family, []), rng)
            previous[family] = episodes
        yield from batches(pool, plan.tokens_per_update, rng)


def train_backbone(plan: BackbonePlan, folder: Path, max_minutes: float) -> LanguageModel:
    """Tokenizer and network from nothing; the checkpoint is written every 500 updates."""
    model = new_tiny_model(
        train_tokenizer(_tokenizer_texts(plan.seed), plan.vocab_size),
        hidden_size=plan.hidden_size,
        num_layers=plan.num_layers,
        num_heads=plan.num_heads,
        max_positions=4096,
        seed=plan.seed,
    )
    started = time.monotonic()
    losses: list[float] = []

    def report(progress: SftProgress) -> None:
        losses.append(progress.loss)
        if progress.update % 100 == 0:
            minutes = (time.monotonic() - started) / 60
            print(f"{progress.update}/{progress.num_updates} loss {sum(losses[-100:]) / 100:.4f} {minutes:.1f} min", flush=True)
        if progress.update % 500 == 0:
            model.save(folder)

    fit(model.network, batch_stream(model.format, plan), plan.num_updates, plan.learning_rate, report)
    model.save(folder)
    return model


def _tokenizer_texts(seed: int) -> Iterator[str]:
    """One turn of each of many games, for the grammar, and many names that come once."""
    rng = random.Random(seed)
    for episodes in itertools.islice(corpus(seed + 7), 400):
        turn = rng.choice(episodes[0].turns)
        yield from (f" {episodes[0].task.instruction}", f"\n{turn.state}", f" {turn.action}", f" {turn.step.reasoning}")
        yield from (CONTINUE, SUCCESS, FAILURE)
    for _ in range(3000):
        yield from (f" {name}" for name in invented_names("ab", PLAIN_WORDS, SYLLABLES, rng).values())


if __name__ == "__main__":
    import sys

    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
    train_backbone(BackbonePlan(num_updates=int(sys.argv[3]) if len(sys.argv) > 3 else 12000), Path(sys.argv[1]), 0)
