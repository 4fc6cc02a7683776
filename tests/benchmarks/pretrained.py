"""A pretrained network learns in its dream, on one device: the loop of `models/` without pipeline, storage or tracking.

    python -m tests.benchmarks.pretrained FOLDER --recipe textworld-tiny
    python -m tests.benchmarks.pretrained models/backbones/textworld-tiny --rounds 2 --every 1 --groups 8 --valid 16 --own 16

Logs, clone, own episodes, experience model, then rounds of dream and update. Every few rounds the policy is cloned anew
from its demonstrations and those of its dreamt wins that hold when they are replayed for real. Before and after that, valid
games are played for real and in the dream. Last comes what the logs are worth without a dream: a policy that clones all that
won. One JSON line per step says what it took.
"""

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import Tensor

from flows.planning.load_recipe import load_recipe
from infra.environments.by_name import admissible_actions_of, annotator_of_facts, open_environment
from models.examples.supervised import experience_example, grounded, policy_examples
from models.experience.experience_formats import open_experience_format
from models.experience.experience_model import Dream, ExperienceModel
from models.experience.predictors import LocalPredictor
from models.generation.torch_engine import TorchEngine, engine_weights
from models.measurement.calibration import as_episode, calibrate, replay
from models.measurement.intervals import paired_gain
from models.methods.scoring import Scoring
from models.network.language_model import LanguageModel, load_model
from models.network.trained_parameters import trainable_copy
from models.retrieval.encoders import HashingEncoder
from models.retrieval.replay_index import IndexedTransition, ReplayIndex, join
from models.rollout.behaviour_policies import collect
from models.rollout.rollouts import Rollout, RolloutOptions
from models.rollout.wins import shortest_successes
from models.text.policies.policy_formats import open_policy_format
from models.text.renaming import name_pieces, renamed, to_invented_names
from models.training.checkpoints import Checkpoints, optimizer_state
from models.training.jobs import PolicyUpdateJob, SftJob
from models.training.sft import Example
from schemas.ports import Environment
from schemas.recipes.networks import SftRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Trajectory

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NOISE = (0.0, 0.15, 0.25, 0.5)
TOKENS_PER_BATCH = 16_000


@contextmanager
def step(name: str) -> Iterator[dict[str, Any]]:
    """Time a step, and print it with what it found."""
    found: dict[str, Any] = {}
    began = time.perf_counter()
    yield found
    peak = torch.cuda.max_memory_allocated() / 1e9 if DEVICE == "cuda" else 0.0
    print(
        json.dumps({"step": name, "s": round(time.perf_counter() - began, 1), "gb": round(peak, 1), **found}),
        flush=True,
    )


@dataclass
class Loop:
    """What stays through the rounds."""

    recipe: Recipe
    seed: int

    def __post_init__(self) -> None:
        self.real = open_environment(self.recipe.environment)
        self.annotator = annotator_of_facts(self.recipe.environment)
        self.index = ReplayIndex(HashingEncoder())
        self.rng = random.Random(self.seed)
        self.limits: Counter[str] = Counter()

    def explained(self, episodes: Sequence[Trajectory]) -> list[Trajectory]:
        """Return episodes with first states and reasoning, and remember their transitions."""
        traces = self.annotator.annotate(episodes)
        whole = [
            replace(
                one,
                task=replace(one.task, initial_state=one.turns[0].state),
                turns=[replace(t, step=replace(t.step, reasoning=r)) for t, r in zip(one.turns, own, strict=True)],
                episode_id=f"{one.task.task_id}/{self.rng.random()}",
            )
            for one, own in zip(episodes, traces, strict=True)
        ]
        turns = [(one, turn) for one in whole for turn in one.turns]
        vectors = join(
            HashingEncoder(),
            [o.task.instruction for o, _ in turns],
            [t.state for _, t in turns],
            [t.action for _, t in turns],
        )
        self.index.add(
            vectors,
            [IndexedTransition.of(o.episode_id, o, t, self.recipe.retrieval.demonstrations) for o, t in turns],
        )
        return whole

    def clone(
        self, base: LanguageModel, episodes: Sequence[Trajectory], sft: SftRecipe
    ) -> tuple[LanguageModel, dict[str, Any]]:
        """Return the base, trained to act like these episodes, with renamed copies."""
        start = self.recipe.start
        shown = [*episodes, *(copy for one in episodes for copy in self.copies(base, one, start.renamed_copies))]
        examples = [
            e for one in shown for e in policy_examples(open_policy_format(base.format, self.recipe.policy), one)
        ]
        return self.tuned(base, examples, sft)

    def copies(self, base: LanguageModel, episode: Trajectory, count: int) -> list[Trajectory]:
        """Return copies of an episode with invented names."""
        pieces, names = name_pieces(base.tokenizer.get_vocab()), self.real.names(episode.task)
        return [renamed(episode, to_invented_names(names, [episode], self.rng, pieces)) for _ in range(count)]

    def fit(
        self, base: LanguageModel, episodes: Sequence[Trajectory], sft: SftRecipe
    ) -> tuple[LanguageModel, dict[str, Any]]:
        """Return the base, trained to predict the transitions of these episodes."""
        recipe, k = self.recipe.experience, self.recipe.retrieval.num_demonstrations
        format, dropping = open_experience_format(base.format, recipe), random.Random(self.seed)
        examples: list[Example] = []
        for one in episodes:
            for i, situation in enumerate(grounded(one, one.episode_id, self.index, recipe, k, dropping)):
                example = experience_example(format, situation, one, i)
                examples += [example] * (recipe.rare_outcome_copies if one.turns[i].step.done else 1)
        return self.tuned(base, examples, sft)

    def tuned(
        self, base: LanguageModel, examples: list[Example], sft: SftRecipe
    ) -> tuple[LanguageModel, dict[str, Any]]:
        """Return the base, fine-tuned on examples, and what that took."""
        losses: list[float] = []
        num_tokens = sum(len(one.ids) for one in examples)
        num_updates = max(1, round(sft.epochs * num_tokens / sft.tokens_per_update))
        model = replace(base, network=trainable_copy(base.network, self.recipe.training, self.seed))
        job = SftJob(examples, sft.tokens_per_update, TOKENS_PER_BATCH, num_updates, sft.learning_rate)
        with tempfile.TemporaryDirectory() as folder:
            job.run(model.network, self.seed, lambda p: losses.append(p.loss), Checkpoints(Path(folder)))
        return model, {
            "updates": num_updates,
            "tokens": round(num_tokens * sft.epochs),
            "loss": [losses[0], losses[-1]],
        }

    def play(
        self,
        policy: LanguageModel,
        environment: Environment,
        origin: Any,
        tasks: Sequence[AgentTask],
        temperature: float,
        seed: int,
    ) -> list[Trajectory]:
        """Play one episode per task."""
        engine = TorchEngine(engine_weights(policy.network), seed)
        asked = self.recipe.policy
        options = RolloutOptions(temperature, self.recipe.environment.max_steps, asked.max_episode_tokens, 256)
        format = open_policy_format(policy.format, self.recipe.policy)
        rollout = Rollout(engine, format, environment, origin, options)
        episodes = rollout.play(tasks)
        self.limits.update(rollout.limits)
        return episodes

    def dream_of(self, model: LanguageModel) -> Dream:
        """Return the experience model as an environment."""
        asked = self.recipe.experience
        predictor = LocalPredictor(
            TorchEngine(engine_weights(model.network), self.seed),
            open_experience_format(model.format, asked),
            asked.max_new_tokens,
            met=self.limits.update,
        )
        listed = admissible_actions_of(self.recipe.environment)
        return Dream(ExperienceModel(predictor, self.index, asked, self.recipe.retrieval.num_demonstrations, listed))

    def hold(self, dreamt: Sequence[Trajectory]) -> list[Trajectory]:
        """Return the real episodes of those dreamt actions that win for real."""
        return [as_episode(one, steps) for one, steps in zip(dreamt, replay(dreamt, self.real), strict=True)]

    def measure(self, policy: LanguageModel, model: LanguageModel, tasks: Sequence[AgentTask], when: str) -> list[bool]:
        """Play valid games greedily, for real and in the dream, and replay the dreams; return the real successes."""
        with step(f"valid games, {when}") as found:
            real = self.play(policy, self.real, "real", tasks, 0.0, self.seed)
            found |= {"success": success(real), "episodes": len(tasks), "limits so far": dict(self.limits)}
        with step(f"valid games in the dream, {when}") as found:
            begun = [
                one.task if one.task.initial_state else replace(one.task, initial_state=one.turns[0].state)
                for one in real
            ]
            dreamt = self.play(policy, self.dream_of(model), "dream", begun, 0.0, self.seed)
            found |= {k: short(v) for k, v in calibrate(dreamt, replay(dreamt, self.real), real).metrics().items()}
        return [one.success for one in real]


def success(episodes: Sequence[Trajectory]) -> float:
    """Return the share of episodes that succeed."""
    return sum(one.success for one in episodes) / len(episodes)


def main(
    folder: Path,
    recipe: str = "textworld-tiny",
    rounds: int = 8,
    every: int = 4,
    groups: int = 32,
    valid: int = 200,
    demonstrations: int = 24,
    own: int = 240,
    clone_rate: float = 3e-4,
    clone_epochs: float = 4.0,
    fit_epochs: float = 2.0,
    rl_rate: float = 2e-5,
    updates: int = 8,
    seed: int = 0,
    changes: Annotated[list[str] | None, typer.Option("--set")] = None,
) -> None:
    """Run the loop, and print a line per step."""
    chosen = load_recipe(recipe, changes or ())
    rl = chosen.rl.model_copy(
        update={"learning_rate": rl_rate, "updates_per_round": updates, "temperature": 1.0, "warmup_updates": 0}
    )
    loop = Loop(chosen, seed)
    rng = loop.rng
    with step("load") as found:
        base = load_model(folder)
        base = replace(base, network=base.network.to(DEVICE))
        found |= {"weights": base.num_parameters, "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"}
    with step("logs") as found:
        tasks = loop.real.tasks("train", chosen.environment.num_train_tasks)
        held_out = loop.real.tasks("valid", valid)
        logs = loop.explained(collect(loop.real, tasks, NOISE, seed, chosen.environment.max_steps))
        found |= {"episodes": len(logs), "success": success(logs)}
    clone_recipe = SftRecipe(epochs=clone_epochs, learning_rate=clone_rate, tokens_per_update=4_096)
    won = shortest_successes(logs)
    wins = won[:demonstrations]
    with step("clone") as found:
        policy, took = loop.clone(base, wins, clone_recipe)
        found.update(took, demonstrations=len(wins))
    with step("own episodes") as found:
        mine = loop.explained(loop.play(policy, loop.real, "real", rng.sample(tasks, min(own, len(tasks))), 1.0, seed))
        found |= {"episodes": len(mine), "success": success(mine)}
    with step("experience model") as found:
        model, took = loop.fit(
            base, logs + mine, SftRecipe(epochs=fit_epochs, learning_rate=clone_rate, tokens_per_update=8_192)
        )
        found.update(took)
    start = loop.measure(policy, model, held_out, "start")
    reference, state = deepcopy(policy.network), dict[str, Tensor]()
    starts = [one.task for one in shortest_of(logs)]
    dreams: list[Trajectory] = []
    for round in range(rounds):
        with step(f"round {round}: dream") as found:
            drawn = [task for task in rng.sample(starts, min(groups, len(starts))) for _ in range(rl.group_size)]
            dreamt = loop.play(policy, loop.dream_of(model), "dream", drawn, rl.temperature, seed * 1000 + round)
            named = [replace(one, group_id=one.task.task_id) for one in dreamt]
            dreams += dreamt
            found |= {"success": success(dreamt), "broken": sum(one.failure is not None for one in dreamt)}
        with step(f"round {round}: update") as found:
            informative, counts = Scoring.of(rl).informative_groups(named)
            if informative:
                job = PolicyUpdateJob(informative, rl.in_round(round), round, TOKENS_PER_BATCH)
                metrics, trainer = job.run(policy.network, reference, state)
                state = optimizer_state(trainer.optimizer)
                found |= {name: short(value) for name, value in metrics.items()}
            found |= {"groups": len(informative), **counts}
        if (round + 1) % every == 0:
            after = loop.measure(policy, model, held_out, f"after round {round}")
            print(json.dumps({"step": "gain", **gain(after, start)}), flush=True)
            with step("consolidation") as found:
                claimed = shortest_successes(
                    [one for one in dreams if one.task.task_id not in {w.task.task_id for w in wins}]
                )
                held = loop.hold(claimed)
                wins, dreams = shortest_successes([*wins, *held]), []
                policy, took = loop.clone(base, wins, clone_recipe)
                found.update(
                    took, claimed=len(claimed), replayed_steps=sum(len(one.turns) for one in held), wins=len(wins)
                )
            after = loop.measure(policy, model, held_out, "consolidated")
            print(json.dumps({"step": "gain", **gain(after, start)}), flush=True)
            reference, state = deepcopy(policy.network), {}
    with step("clone of all logs that won") as found:
        policy, took = loop.clone(base, won, clone_recipe)
        found.update(took, demonstrations=len(won))
    after = loop.measure(policy, model, held_out, "all logs cloned")
    print(json.dumps({"step": "gain", **gain(after, start)}), flush=True)


def shortest_of(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    """Return one episode of each task."""
    return list({one.task.task_id: one for one in episodes}.values())


def gain(after: Sequence[bool], before: Sequence[bool]) -> dict[str, float]:
    """Return the paired gain over the start, with its 95% interval."""
    found = paired_gain([float(one) for one in after], [float(one) for one in before])
    return {"mean": short(found.mean), "low": short(found.low), "high": short(found.high)}


def short(value: float) -> float:
    """Return four significant digits."""
    return float(f"{value:.4g}")


if __name__ == "__main__":
    typer.run(main)
