"""Recipe fields that have another name now, or none: refused in new recipes, translated in stored ones."""

from collections.abc import Iterator
from typing import Any

from schemas.recipes.digests import recorded_defaults

_IN_RL = (
    *("groups_per_round", "group_size", "temperature", "mask_truncated", "learning_rate", "warmup_updates"),
    *("decay_per_round", "updates_per_round"),
)
_IN_LOSS = ("clip_low", "clip_high", "kl_coefficient", "importance_correction", "max_importance_ratio")
_IN_ADVANTAGE = ("normalise_std", "leave_one_out", "negative_scale")
_RENAMED = {
    **{f"grpo.{name}": f"rl.{name}" for name in _IN_RL},
    **{f"grpo.{name}": f"rl.loss.{name}" for name in _IN_LOSS},
    **{f"grpo.{name}": f"rl.advantage.{name}" for name in _IN_ADVANTAGE},
    "grpo.renamed_share": "rl.entity_renaming",
    "curriculum.floor": "curriculum.method.floor",
    "dream.when_parted": "dream.when_gap_exceeded",
    "experience.heed_lists": "experience.enforce_admissible_actions",
    "experience.num_refit_episodes": "experience.num_on_policy_episodes",
    "experience.num_votes": "experience.judge.num_votes",
    "experience.refit_temperatures": "experience.on_policy_temperatures",
    "experience.rename_share": "experience.entity_renaming",
    "start.history_length": "policy.history_length",
    "start.remember_episode": "policy.remember_episode",
    "ingest.known_tasks": "ingest.require_known_tasks",
    "ingest.noise": "ingest.behaviour.noise",
}
_REPLACED = {
    "gate.champion_margin": "gate.false_promotion_rate: a champion's successor must be better than it, and the rate says "
    "how rarely luck may pass for that",
}


def refuse_former_fields(plain: dict[str, Any]) -> None:
    """Refuse a recipe that has former fields.

    Raises:
        ValueError: it has; the message says what each is called now.
    """
    problems = [f"{old} is now {new}" for old, new in _RENAMED.items() if _value(plain, old) is not _MISSING]
    problems += [f"{old} is replaced by {new}" for old, new in _REPLACED.items() if _value(plain, old) is not _MISSING]
    problems += [f"grpo.{name}: no such field; the section is now rl" for name in _strangers(plain)]
    if problems:
        raise ValueError("; ".join(problems))


def translated(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a stored recipe with today's names; fields that were replaced, or had their default, are dropped."""
    current = {name: dict(value) if isinstance(value, dict) else value for name, value in plain.items()}
    for old in (*_RENAMED, *_REPLACED):
        value = _take(current, old)
        if value not in (_MISSING, _former_default(old)) and old in _RENAMED:
            _put(current, _RENAMED[old], value)
    if not current.get("grpo", True):
        del current["grpo"]
    return current


_MISSING = object()


def _former_default(dotted: str) -> Any:
    section, name = dotted.split(".")
    return recorded_defaults()[f"{section.capitalize()}Recipe"].get(name, _MISSING)


def _strangers(plain: dict[str, Any]) -> Iterator[str]:
    given = plain.get("grpo")
    yield from (name for name in given if f"grpo.{name}" not in _RENAMED) if isinstance(given, dict) else ()


def _value(plain: dict[str, Any], dotted: str) -> Any:
    section, name = dotted.split(".")
    fields = plain.get(section)
    return fields.get(name, _MISSING) if isinstance(fields, dict) else _MISSING


def _take(plain: dict[str, Any], dotted: str) -> Any:
    section, name = dotted.split(".")
    fields = plain.get(section)
    return fields.pop(name, _MISSING) if isinstance(fields, dict) else _MISSING


def _put(plain: dict[str, Any], dotted: str, value: Any) -> None:
    *sections, name = dotted.split(".")
    for section in sections:
        plain = plain.setdefault(section, {})
    plain[name] = value
