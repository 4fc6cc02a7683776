"""Behaviours that fill the logs: an expert, an expert that errs, and one that mostly errs.

Logs must hold what a learning policy will do, its mistakes too: an experience model that never saw an
action refused will grant it.
"""

import random
from collections.abc import Sequence

from schemas.ports import RealEnvironment
from schemas.records import AgentTask, Trajectory, Turn


def collect(
    environment: RealEnvironment, tasks: Sequence[AgentTask], noise: Sequence[float], seed: int, max_steps: int
) -> list[Trajectory]:
    """One real episode per task, played by an expert that errs.

    Args:
        environment: Where to play.
        tasks: One episode each; repeat a task for more.
        noise: Probability of an error per step; dealt to the tasks in turn. 0 is the expert itself.
        seed: Of the errors.
        max_steps: Limit of an episode.
    """
    return [
        _play(environment, task, noise[i % len(noise)], random.Random(f"{seed}/{i}"), max_steps)
        for i, task in enumerate(tasks)
    ]


def _play(
    environment: RealEnvironment, task: AgentTask, noise: float, rng: random.Random, max_steps: int
) -> Trajectory:
    state = environment.reset({0: task})[0]
    turns: list[Turn] = []
    while len(turns) < max_steps and not (turns and turns[-1].step.done):
        erring = rng.random() < noise
        action = _mistake(environment, rng) if erring else environment.expert(0)
        step = environment.step({0: action})[0]
        turns.append(Turn(state, action, step))
        state = step.state
    source = f"noisy expert {noise}" if noise else "expert"
    return Trajectory(task, "real", turns, truncated=not turns[-1].step.done, source=source)


def _mistake(environment: RealEnvironment, rng: random.Random) -> str:
    """Mostly a slip; else something that is possible, something that is likely refused, or babble.

    The verb of the middle two is drawn first, so that the few fatal actions (to eat an ingredient, say) come
    as often as the many harmless ones: they are what a dream must get right.
    """
    meant, possible = environment.expert(0), environment.admissible_actions(0)
    kind = rng.choices(("slip", "possible", "near miss", "garbled"), weights=(3, 1, 1, 1))[0]
    if kind == "garbled":
        return garbled(rng.choice([meant, *possible]), rng)
    if kind == "slip" and possible:
        return rng.choice(_slips(meant, possible))
    actions = possible if kind == "possible" and possible else environment.near_misses(0)
    verb = rng.choice(sorted({action.split(" ")[0] for action in actions}))
    return rng.choice([action for action in actions if action.split(" ")[0] == verb])


def garbled(action: str, rng: random.Random) -> str:
    """An action as a language model that is still learning might misspell it."""
    words = action.split(" ")
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(words))
        word = words[place]
        half = word[: max(1, len(word) // 2)]
        words[place] = rng.choice((half, word + half, f"{word} {word}", rng.choice(words), word[::-1]))
    return " ".join(words)


def _slips(meant: str, possible: Sequence[str]) -> list[str]:
    """The possible actions that share most words with what an expert meant to do: the wrong tool, the wrong cut."""
    words = set(meant.split(" "))
    overlaps = {action: len(words & set(action.split(" "))) for action in possible if action != meant}
    best = max(overlaps.values(), default=0)
    return [action for action, overlap in overlaps.items() if overlap == best] or list(possible)
