"""Proposals of other actions than the demonstrated ones (Early Experience, arXiv 2510.08558, section 4.1).

Differs: the environment's own lists may propose, where the paper asks the initial policy: a policy that was cloned from
few demonstrations knows their states by heart, and takes hardly any other action in them.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from models.text.policies.policy_format import PolicyFormat, is_malformed
from schemas.ports import Engine, RealEnvironment
from schemas.records import Trajectory

_NUM_SLOTS = 128
"""Maximum number of demonstrations under way, or of states that are asked about, at a time."""
_TEMPERATURE = 1.0
_SAMPLES_PER_PROPOSAL = 2
"""Number of actions that a policy is asked for per proposal: some will be the demonstrated one, or alike."""

Proposals = list[list[list[str]]]
"""Other actions, by demonstration and turn."""


def proposed_by_environment(
    demonstrations: Sequence[Trajectory], environment: RealEnvironment, num_wanted: int, rng: random.Random
) -> tuple[Proposals, int]:
    """Return other actions from the environment's own lists, and the number of real steps that it took.

    They come in turn from the actions that would change the state, and from those of which most would be refused. A
    demonstration that goes another way in this environment has none from there on.
    """
    starts = range(0, len(demonstrations), _NUM_SLOTS)
    parts = [_along(demonstrations[start : start + _NUM_SLOTS], environment, num_wanted, rng) for start in starts]
    return [found for proposals, _ in parts for found in proposals], sum(num_steps for _, num_steps in parts)


def _along(
    demonstrations: Sequence[Trajectory], environment: RealEnvironment, num_wanted: int, rng: random.Random
) -> tuple[Proposals, int]:
    states, num_steps = environment.reset({slot: one.task for slot, one in enumerate(demonstrations)}), 0
    found: Proposals = [[[] for _ in one.turns] for one in demonstrations]
    for number in range(max(len(one.turns) for one in demonstrations)):
        there = {slot: one.turns[number] for slot, one in enumerate(demonstrations) if number < len(one.turns)}
        reached = {slot: turn for slot, turn in there.items() if states.get(slot) == turn.state}
        for slot, turn in reached.items():
            lists = environment.admissible_actions(slot), environment.near_misses(slot)
            found[slot][number] = other_actions(turn.action, lists, num_wanted, rng)
        steps = environment.step({slot: turn.action for slot, turn in reached.items()})
        states = {slot: step.state for slot, step in steps.items() if not step.done}
        num_steps += len(steps)
    return found, num_steps


def proposed_by_policy(
    demonstrations: Sequence[Trajectory],
    engine: Engine,
    format: PolicyFormat,
    num_wanted: int,
    rng: random.Random,
) -> Proposals:
    """Return other actions that a policy takes at temperature 1; fewer where it is sure of the demonstrated one."""
    prompts = [
        format.prompt(one.task, one.history(number), turn.state).ids
        for one in demonstrations
        for number, turn in enumerate(one.turns)
    ]
    answers = _sampled(prompts, engine, format, num_wanted * _SAMPLES_PER_PROPOSAL)
    return [
        [other_actions(turn.action, [next(answers)], num_wanted, rng) for turn in one.turns] for one in demonstrations
    ]


def _sampled(prompts: list[list[int]], engine: Engine, format: PolicyFormat, num_each: int) -> Iterator[list[str]]:
    """Yield the actions that a policy writes after each prompt; an answer without one is an empty action."""
    for start in range(0, len(prompts), _NUM_SLOTS):
        repeated = [prompt for prompt in prompts[start : start + _NUM_SLOTS] for _ in range(num_each)]
        rows = range(len(repeated))
        streams = engine.open(len(rows))
        streams.extend(rows, repeated)
        written = [format.read(one).action for one in streams.generate(rows, format.sampling(_TEMPERATURE))]
        actions = ["" if is_malformed(action) else action for action in written]
        yield from (actions[first : first + num_each] for first in range(0, len(actions), num_each))


def other_actions(demonstrated: str, lists: Iterable[Sequence[str]], num_wanted: int, rng: random.Random) -> list[str]:
    """Return up to num_wanted actions, from each list in turn; none is the demonstrated one, and no two are alike."""
    shuffled = [rng.sample(sorted(set(one)), len(set(one))) for one in lists]
    spellings: dict[str, str] = {}
    for action in chain.from_iterable(zip_longest(*shuffled, fillvalue="")):
        spellings.setdefault(_normalised(action), action)
    others = [
        spelling for normalised, spelling in spellings.items() if normalised not in ("", _normalised(demonstrated))
    ]
    return others[:num_wanted]


def _normalised(action: str) -> str:
    return " ".join(action.lower().split())
