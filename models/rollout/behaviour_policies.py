"""Behaviour policies that fill the logs: an expert, an expert that errs, and one that mostly errs.

Logs must contain what a learning policy will do, including its mistakes: an experience model that never saw
an action refused will grant it.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from schemas.ports import RealEnvironment
from schemas.records import AgentTask, Step, Trajectory, Turn

_NUM_SLOTS = 64


def collect(
    environment: RealEnvironment,
    tasks: Sequence[AgentTask],
    noise: Sequence[float],
    seed: int,
    max_steps: int,
    on_progress: Callable[[int, int], None] = lambda num_done, num_total: None,
) -> list[Trajectory]:
    """Play one real episode per task with an expert that errs.

    Args:
        environment: Environment to play in.
        tasks: One episode each; repeat a task for more.
        noise: Probability of an error per step, assigned to the tasks in turn; 0 is the expert itself.
        seed: Seed of the errors.
        max_steps: Maximum number of steps of an episode.
        on_progress: Called after each turn with the number of finished episodes and of all episodes.
    """
    episodes = [
        _Episode(task, noise[i % len(noise)], random.Random(f"{seed}/{i}"), max_steps) for i, task in enumerate(tasks)
    ]
    waiting = deque(episodes)
    playing: dict[int, _Episode] = {}
    while waiting or playing:
        starting = {slot: waiting.popleft() for slot in range(_NUM_SLOTS) if slot not in playing and waiting}
        for slot, state in environment.reset({slot: one.task for slot, one in starting.items()}).items():
            starting[slot].state = state
        playing |= starting
        actions = {slot: one.action(environment, slot) for slot, one in playing.items()}
        for slot, step in environment.step(actions).items():
            playing[slot].take(actions[slot], step)
        playing = {slot: one for slot, one in playing.items() if not one.is_over}
        on_progress(len(episodes) - len(waiting) - len(playing), len(episodes))
    return [one.trajectory for one in episodes]


@dataclass
class _Episode:
    """Running episode, with the settings of its errors."""

    task: AgentTask
    noise: float
    rng: random.Random
    max_steps: int
    state: str = ""
    turns: list[Turn] = field(default_factory=list)

    def action(self, environment: RealEnvironment, slot: int) -> str:
        return _mistake(environment, slot, self.rng) if self.rng.random() < self.noise else environment.expert(slot)

    def take(self, action: str, step: Step) -> None:
        self.turns.append(Turn(self.state, action, step))
        self.state = step.state

    @property
    def is_over(self) -> bool:
        return self.turns[-1].step.done or len(self.turns) == self.max_steps

    @property
    def trajectory(self) -> Trajectory:
        last = self.turns[-1].step
        source = f"noisy expert {self.noise}" if self.noise else "expert"
        return Trajectory(self.task, "real", self.turns, failure=last.failure, truncated=not last.done, source=source)


def _mistake(environment: RealEnvironment, slot: int, rng: random.Random) -> str:
    """Return a mistake: mostly a slip, else a possible action, one that is likely refused, or a garbled one.

    The verb of the middle two is drawn first, so that the few fatal actions (for example, eating an ingredient)
    are as frequent as the many harmless ones: a dream must get them right.
    """
    to_original, possible = environment.expert(slot), environment.admissible_actions(slot)
    kind = rng.choices(("slip", "possible", "near miss", "garbled"), weights=(3, 1, 1, 1))[0]
    if kind == "garbled":
        return garbled(rng.choice([to_original, *possible]), rng)
    if kind == "slip" and possible:
        return rng.choice(_slips(to_original, possible))
    actions = (possible if kind == "possible" else []) or environment.near_misses(slot) or [to_original]
    verb = rng.choice(sorted({action.split(" ")[0] for action in actions}))
    return rng.choice([action for action in actions if action.split(" ")[0] == verb])


def garbled(action: str, rng: random.Random) -> str:
    """Misspell an action as a language model might that is still learning."""
    words = action.split(" ")
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(words))
        word = words[place]
        half = word[: max(1, len(word) // 2)]
        words[place] = rng.choice((half, word + half, f"{word} {word}", rng.choice(words), word[::-1]))
    return " ".join(words)


def _slips(to_original: str, possible: Sequence[str]) -> list[str]:
    """Return the possible actions that share most words with the expert's: the wrong tool, the wrong cut."""
    words = set(to_original.split(" "))
    overlaps = {action: len(words & set(action.split(" "))) for action in possible if action != to_original}
    best = max(overlaps.values(), default=0)
    return [action for action, overlap in overlaps.items() if overlap == best] or list(possible)
