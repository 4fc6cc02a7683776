"""Verdict on an episode in a log: success, rewards of its steps, and whether it was stopped before its end."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from schemas.recipes.log_mapping import LogMapping

_Verdict = TypeVar("_Verdict")
_INSIDE = ("info", "evaluation", "metadata", "metrics", "feedback", "eval")
"""Records in which verdicts are kept, too."""
_USUAL = (
    *(
        "success",
        "is_success",
        "is_successful",
        "succeeded",
        "task_success",
        "resolved",
        "is_resolved",
        "solved",
        "passed",
    ),
    *("pass", "is_correct", "correct", "won", "goal_achieved", "is_solved"),
)
_SUCCESSES = (
    *(*_USUAL, "correctness", "accuracy", "scores", "outcome", "verdict", "result", "grade", "feedback", "target"),
    *(f"{place}.{name}" for place in _INSIDE for name in _USUAL),
)
_NO_WORDS = ("target",)
"""Fields of which a text is no verdict, but what was wanted."""
REWARDS = (
    *("reward", "final_reward", "total_reward", "cum_reward", "rewards", "score", "scores"),
    *("reward_info.reward", "summary_info.cum_reward"),
    *(f"{place}.{name}" for place in _INSIDE for name in ("reward", "score")),
)
"""Fields that hold rewards."""
_STOPPED = (
    *("truncated", "is_truncated", "truncations", "early_exit", "TimeLimit.truncated"),
    *(f"{place}.truncated" for place in ("info", "metadata", "summary_info", "info.TimeLimit")),
)
"""Fields that say that an episode was stopped."""
_REASONS = (
    *("stop_condition", "stop_reason", "exit_status", "termination_reason", "terminated_reason", "finish_reason"),
    *("termination", "stopped_by", "state", "status", "subtype", "error", "limit"),
    *(f"{place}.{name}" for place in ("info", "metadata") for name in ("exit_status", "stop_reason")),
)
"""Fields that say why an episode ended."""
_COUNTED = "(?:step|turn|iteration|message|action|round|time|cost|budget)"
_OUT_OF_STEPS = re.compile(
    rf"max(?:imum)?[\s_-]*(?:num(?:ber)?[\s_-]*(?:of[\s_-]*)?)?{_COUNTED}|{_COUNTED}s?[\s_-]*limit|limits?[\s_-]*exceeded|"
    rf"(?:too[\s_-]*many|out[\s_-]*of)[\s_-]*{_COUNTED}|exit_(?:cost|context|total_execution_time)|early_exit|truncated",
    re.IGNORECASE,
)
_YES = (
    "true",
    "yes",
    "1",
    "c",
    "success",
    "successful",
    "succeeded",
    "pass",
    "passed",
    "correct",
    "solved",
    "resolved",
)
_NO = ("false", "no", "0", "i", "n", "failure", "fail", "failed", "incorrect", "unsolved", "unresolved")
_WORDS = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}
"""Words for a verdict; C, I and N are the scores of inspect."""
NO_VERDICT = "does not say whether it succeeded: say it for all with --success, or map `success` or `reward`"
CONTRADICTION = "verdicts that contradict each other: a success counts before rewards, these before scores"
STOPPED = "successes of episodes that ran out of steps, which count as none"
OTHER_STEPS = "rewards of another number of steps, of which the last one was taken"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of an episode."""

    success: bool
    rewards: list[float]
    """Reward of each step."""
    truncated: bool
    found_at: str
    """Name of the field that gave the success, or else the reward, or else says that it was stopped."""
    remarks: tuple[str, ...] = ()


def verdict_on(said: Callable[..., Any], mapping: LogMapping, num_steps: int) -> Verdict:
    """Return the verdict that a record gives; an episode that was stopped, of which nothing else is said, is no success.

    Args:
        said: Returns the value of a field, or None.
        mapping: Mapping, whose `success_from` makes a success of a reward.
        num_steps: Number of steps of the episode.

    Raises:
        ValueError: the record gives none.
    """
    success_at, success = _first(partial(_judged, said), as_success, _names(_SUCCESSES, mapping))
    reward_at, rewards = _first(said, lambda value: as_rewards(value, num_steps), _names(REWARDS, mapping))
    stopped_at = _stopped_at(said, mapping)
    if success is None and rewards is None:
        success = mapping.success_otherwise
    if success is None and rewards is None:
        if not stopped_at:
            raise ValueError(NO_VERDICT)
        success = False
    earned = None if rewards is None else rewards[-1] >= mapping.success_from
    succeeded = bool(earned if success is None else success)
    remarks = {
        CONTRADICTION: {True, False} <= {success, earned, *_others(said, mapping)},
        STOPPED: bool(stopped_at) and succeeded,
        OTHER_STEPS: bool(reward_at) and _is_of_others(said(reward_at), num_steps),
    }
    rewards = rewards or [*[0.0] * (num_steps - 1), float(succeeded)]
    odd = tuple(remark for remark, holds in remarks.items() if holds)
    return Verdict(succeeded, rewards, bool(stopped_at), success_at or reward_at or stopped_at, odd)


def _others(said: Callable[..., Any], mapping: LogMapping) -> Iterator[bool | None]:
    """Yield the verdicts under further usual names; none of a kind that the mapping gives."""
    given = {**mapping.paths, **mapping.constants}
    if "success" not in given:
        yield from (as_success(said(name)) for name in _USUAL)
    if "reward" not in given and isinstance(score := said("score"), int | float):
        yield score >= mapping.success_from


def _is_of_others(rewards: Any, num_steps: int) -> bool:
    """Return whether a list of rewards, which is more than an outcome, has another length than the episode."""
    return isinstance(rewards, list) and len(rewards) not in (1, num_steps)


def _stopped_at(said: Callable[..., Any], mapping: LogMapping) -> str:
    """Return the field that says that an episode was stopped before its end, as when it ran out of steps; empty: none."""
    reasons = () if _STOPPED[0] in {**mapping.paths, **mapping.constants} else _REASONS
    signs = (name for name in _names(_STOPPED, mapping) if as_success(_last(said(name))))
    return next(chain(signs, (name for name in reasons if _says_so(said(name)))), "")


def _last(value: Any) -> Any:
    return value[-1] if isinstance(value, list) and value else value


def _says_so(reason: Any) -> bool:
    """Return whether a reason is that steps ran out; a record is a limit that was met, as of inspect."""
    if isinstance(reason, str):
        return _OUT_OF_STEPS.search(reason) is not None
    return isinstance(reason, Mapping) and reason.get("type") is not None and "limit" in reason


def _names(usual: Sequence[str], mapping: LogMapping) -> Sequence[str]:
    """Return the names under which a field is looked up: only its own if the mapping says where it is."""
    return usual[:1] if usual[0] in {**mapping.paths, **mapping.constants} else usual


def _judged(said: Callable[..., Any], name: str) -> Any:
    """Return the value of a field, or None if it says what was wanted."""
    value = said(name)
    return None if name in _NO_WORDS and isinstance(value, str) else value


def _first(
    said: Callable[[str], Any], read: Callable[[Any], _Verdict | None], names: Sequence[str]
) -> tuple[str, _Verdict | None]:
    """Return the first name whose field gives a verdict, and the verdict."""
    verdicts = ((name, read(said(name))) for name in names)
    return next((one for one in verdicts if one[1] is not None), ("", None))


def as_success(value: Any) -> bool | None:
    """Return a verdict: true or false, 0 or 1, a word for either, or the value of the only score; None if it is none."""
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(score := next(iter(value.values())), Mapping):
        return as_success(score.get("value"))
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return _listed_verdict(value)
    if isinstance(value, bool):
        return value
    word = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
    number = as_number(value)
    return bool(number) if word is None and number in (0, 1) else word


def _listed_verdict(scores: Sequence[Mapping[str, Any]]) -> bool | None:
    """Return the verdict among scores with their names: under a usual one, or of the only one."""
    named = {str(one.get("name", one.get("key", ""))): one.get("value", one.get("score")) for one in scores}
    usual = [named[name] for name in (*_USUAL, "correctness") if name in named]
    only = [*named.values()] if len(named) == 1 else []
    return next((verdict for one in (*usual, *only) if (verdict := as_success(one)) is not None), None)


def as_rewards(value: Any, num_steps: int) -> list[float] | None:
    """Return the reward of each step: of a number for the last one, of a list for each, or of a record of one number.

    A step's own may be a list of one, and the only score a record with its value.
    """
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(score := next(iter(value.values())), Mapping):
        return as_rewards(score.get("value"), num_steps)
    if isinstance(value, Mapping):
        numbers = [one for one in map(as_number, value.values()) if one is not None]
        return as_rewards(numbers[0], num_steps) if len(numbers) == 1 else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        single = (one[0] if isinstance(one, list) and len(one) == 1 else one for one in value)
        rewards = [one for one in map(as_number, single) if one is not None]
        if not rewards or len(rewards) < len(value):
            return None
        return rewards if len(rewards) == num_steps else as_rewards(rewards[-1], num_steps)
    number = float(value) if isinstance(value, bool) else as_number(value)
    return None if number is None else [*[0.0] * (num_steps - 1), number]


def as_number(value: Any) -> float | None:
    """Return a finite number, also of a text that is one, as in CSV; None of anything else, and of true and false."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
