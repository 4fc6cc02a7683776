"""Text of a new recipe: commented TOML with the fields that logs, environment and model call for."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.logs.log_sizes import LogSizes

_HEAD = """# Drafted by `dreamgym init`, to be corrected. All fields with their defaults: dreamgym check {file} --resolved
name = {name}
description = {description}
"""
_READING, _FIT, _FIT_OF_SMALL, _CLONING = (4, 20), (1, 8), (2, 14), (5, 20)
"""Fewest and most passes over logs; small logs are passed over more often."""
_STEPS_OF_FEWEST = 4_000
"""Number of logged steps from which the fewest passes are enough."""
_HELD_OUT = "Nothing is played for real: 1 of 5 logged tasks is held out for the report, 1 of 10 for calibration."
_MORE_HELD_OUT = (
    "Nothing is played for real: of these few logged tasks, two or more each are held out for report and calibration."
)
_MADE_OF_LOGS = "A network of a million weights and its tokenizer, made of the logs. `dreamgym init --model` takes one that is there."
_BESIDE_STATE = 512
"""Tokens of a prompt beside the present state: history, demonstrations, marks."""
_LEAST_PROMPT = 4_096


@dataclass(frozen=True, slots=True)
class Asked:
    """Logs, environment and model that a recipe is drafted for."""

    name: str
    environment: str = "logs"
    logs: Path | None = None
    """Folder of converted logs; None: the environment's expert is logged."""
    sizes: LogSizes | None = None
    """Sizes of these logs."""
    model: str = ""
    """Pretrained model; empty: a network made of the logs."""
    revision: str = ""
    """Commit of a hub model."""
    held_out: Mapping[str, float] = field(default_factory=dict)
    """Shares of the logged tasks to hold out, by field; empty: the usual ones."""

    @property
    def is_logs_alone(self) -> bool:
        """True if there is no environment to play."""
        return self.environment == "logs"


def drafted(asked: Asked, file: Path) -> str:
    """Return the text of a recipe that runs as it is written."""
    description = _description(asked)
    head = _HEAD.format(file=file, name=json.dumps(asked.name), description=json.dumps(description))
    return "\n".join([head, *_lines(asked)])


def _description(asked: Asked) -> str:
    logged = f"{asked.sizes.num_episodes} logged episodes" if asked.sizes else "episodes of its expert"
    place = "an environment that is not here" if asked.is_logs_alone else asked.environment
    return f"{place[0].upper()}{place[1:]}, from {logged}, with {asked.model or 'a small network made of them'}."


def _lines(asked: Asked) -> Iterator[str]:
    """Yield the sections that have a field or need none, each with a comment before it and an empty line after it."""
    held_out = _MORE_HELD_OUT if asked.held_out else _HELD_OUT
    yield from _section("environment", _environment(asked), held_out if asked.is_logs_alone else "")
    yield from _section(
        "ingest", _ingest(asked), "Written by `dreamgym ingest`; new logs come there by the same command."
    )
    if asked.model:
        yield from _section("backbone", _model(asked))
        yield from _section("training", _adapters(), "Adapters: all else of the model stays as it is.")
    else:
        yield from _section("backbone.scratch", _scratch(asked), _MADE_OF_LOGS, needs_no_field=True)
    yield from _section("experience", _experience(asked))
    yield from _section("retrieval", _retrieval(asked))
    yield from _section("policy", _policy(asked))
    yield from _section("start", _start(asked))
    yield from _section("curriculum", _curriculum(asked))
    yield from _section("rl", [_set("groups_per_round", 16)])
    yield from _section("dream", _dream(asked))


def _section(name: str, fields: Iterable[str], comment: str = "", *, needs_no_field: bool = False) -> Iterator[str]:
    lines = list(fields)
    if lines or needs_no_field:
        yield from (*([f"# {comment}"] if comment else []), f"[{name}]", *lines, "")


def _environment(asked: Asked) -> Iterator[str]:
    yield _set("name", asked.environment)
    if sizes := asked.sizes:
        num_learnt_from = max(2, sizes.num_tasks * 7 // 10) if asked.is_logs_alone else sizes.num_tasks
        yield _set("num_train_tasks", num_learnt_from)
        yield from (_set(name, share) for name, share in asked.held_out.items())
        yield _set(
            "max_steps", sizes.longest_episode + 2, f"the longest logged episode has {sizes.longest_episode} steps"
        )


def _ingest(asked: Asked) -> Iterator[str]:
    if asked.logs:
        yield _set("path", str(asked.logs))
        if not asked.is_logs_alone:
            yield _set(
                "require_known_tasks", False, "true: quarantine episodes of tasks that the environment does not know"
            )


def _model(asked: Asked) -> Iterator[str]:
    yield _set("model", asked.model)
    if asked.revision:
        yield _set("revision", asked.revision)


def _adapters() -> Iterator[str]:
    yield _set("lora_rank", 16)
    yield _set("tokens_per_batch", 4_096)
    yield _set("gradient_checkpointing", True, "a third more time for far less memory")


def _scratch(asked: Asked) -> Iterator[str]:
    if asked.sizes:
        epochs = _epochs(asked.sizes, _READING)
        yield f"sft = {{ epochs = {epochs}, learning_rate = 2e-3, tokens_per_update = 4_096 }}"


def _experience(asked: Asked) -> Iterator[str]:
    if asked.is_logs_alone:
        yield _set("with_reasoning", False, 'true with [annotate] annotator = "teacher" and a teacher_model')
        yield _set("num_on_policy_episodes", 0, "they would be real")
    if asked.model:
        yield _set("template", "chat", "instructions in the model's own chat template")
        yield _set("demonstration_dropout", 0.1, "logs often hold the very answer, which a model learns to copy")
        yield _set("other_tasks_share", 0.3)
    is_small = asked.is_logs_alone and not asked.model
    if is_small:
        yield _set("entity_renaming", 1.0, "each episode also with other identifiers, which it would learn by heart")
    if sizes := asked.sizes:
        epochs = _epochs(sizes, _FIT_OF_SMALL if is_small else _FIT)
        yield _set("sft.epochs", epochs, f"passes over {sizes.num_transitions:,} logged steps")
        yield _set("max_new_tokens", max(128, sizes.prediction_tokens), "the longest logged step, by its characters")
        yield _set("max_prompt_tokens", _prompt(sizes))


def _retrieval(asked: Asked) -> Iterator[str]:
    if asked.model:
        yield _set("num_demonstrations", 3)
        yield _set("demonstrations", "whole")


def _policy(asked: Asked) -> Iterator[str]:
    if asked.model:
        yield _set("template", "chat")
    if sizes := asked.sizes:
        yield _set("max_action_tokens", sizes.action_tokens, "the longest logged action, by its characters")
        yield _set("max_episode_tokens", _prompt(sizes) + sizes.action_tokens)


def _start(asked: Asked) -> Iterator[str]:
    if asked.sizes and asked.sizes.num_successes:
        yield _set("sft.epochs", _epochs(asked.sizes, _CLONING), "passes over the logged successes")
    elif asked.sizes:
        yield _set("from", "base", "no logged episode succeeded, so none can be cloned")


def _curriculum(asked: Asked) -> Iterator[str]:
    if asked.is_logs_alone:
        yield _set("generate", False, "true: the experience model also writes variations of the logged tasks")


def _dream(asked: Asked) -> Iterator[str]:
    yield _set("num_rounds", 6)
    yield _set("calibrate_every", 3)
    if asked.is_logs_alone:
        yield _set("consolidate_every", 0, "dreamt wins cannot be confirmed for real")


def _epochs(sizes: LogSizes, bounds: tuple[int, int]) -> int:
    fewest, most = bounds
    return max(fewest, min(most, fewest * _STEPS_OF_FEWEST // sizes.num_transitions))


def _prompt(sizes: LogSizes) -> int:
    return max(_LEAST_PROMPT, sizes.prompt_tokens + _BESIDE_STATE)


def _set(name: str, value: Any, why: str = "") -> str:
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    return f"{line}  # {why}" if why else line
