"""Text of a new recipe: commented TOML with the fields that logs, environment and model call for."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.logs.log_sizes import LogSizes

_HEAD = """# Drafted by `dreamgym init`, to be corrected. All fields with their defaults: dreamgym check {file} --resolved
name = {name}
description = {description}
"""
_READING, _FIT, _CLONING = (4, 20), (1, 8), (5, 20)
"""Fewest and most passes over logs; small logs are passed over more often."""
_STEPS_OF_FEWEST = 4_000
"""Number of logged steps from which the fewest passes are enough."""
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


def drafted(asked: Asked, file: Path) -> str:
    """Return the text of a recipe that runs as it is written."""
    description = _description(asked)
    head = _HEAD.format(file=file, name=json.dumps(asked.name), description=json.dumps(description))
    return "\n".join([head, *_lines(asked)])


def _description(asked: Asked) -> str:
    logged = f"{asked.sizes.num_episodes} logged episodes" if asked.sizes else "Episodes of its expert"
    made = asked.model or "a small network made of them"
    return f"{logged} of {'an environment that is not here' if asked.environment == 'logs' else asked.environment}; {made}."


def _lines(asked: Asked) -> Iterator[str]:
    yield from _environment(asked)
    yield from _network(asked)
    yield from _experience(asked)
    yield from _policy(asked)
    yield from _training(asked)


def _environment(asked: Asked) -> Iterator[str]:
    sizes = asked.sizes
    only_logs = asked.environment == "logs"
    if only_logs:
        yield "# Nothing is played for real: 1 of 5 logged tasks is held out for the report, 1 of 10 for calibration."
    yield "[environment]"
    yield _set("name", asked.environment)
    if sizes:
        yield _set("num_train_tasks", max(2, sizes.num_tasks * 7 // 10 if only_logs else sizes.num_tasks))
        yield _set(
            "max_steps", sizes.longest_episode + 2, f"the longest logged episode has {sizes.longest_episode} steps"
        )
    yield ""
    if asked.logs:
        yield "# Written by `dreamgym ingest`; new logs come there by the same command."
        yield "[ingest]"
        yield _set("path", str(asked.logs))
        if not only_logs:
            yield _set(
                "require_known_tasks", False, "true: quarantine episodes of tasks that the environment does not know"
            )
        yield ""


def _network(asked: Asked) -> Iterator[str]:
    if not asked.model:
        yield "# A network of a million weights and its tokenizer, made of the logs. `dreamgym init --model` takes one that is there."
        yield "[backbone.scratch]"
        if asked.sizes:
            yield f"sft = {{ epochs = {_epochs(asked.sizes, _READING)}, learning_rate = 2e-3, tokens_per_update = 4_096 }}"
    else:
        yield "[backbone]"
        yield _set("model", asked.model)
        if asked.revision:
            yield _set("revision", asked.revision)
        yield ""
        yield "# Adapters: all else of the model stays as it is."
        yield "[training]"
        yield _set("lora_rank", 16)
        yield _set("tokens_per_batch", 4_096)
        yield _set("gradient_checkpointing", True, "a third more time for far less memory")
    yield ""


def _experience(asked: Asked) -> Iterator[str]:
    sizes = asked.sizes
    yield "[experience]"
    if asked.environment == "logs":
        yield _set("with_reasoning", False, 'true with [annotate] annotator = "teacher" and a teacher_model')
        yield _set("num_on_policy_episodes", 0, "they would be real")
    if asked.model:
        yield _set("template", "chat", "instructions in the model's own chat template")
        yield _set("demonstration_dropout", 0.1, "logs often hold the very answer, which a model learns to copy")
        yield _set("other_tasks_share", 0.3)
    if sizes:
        yield _set("sft.epochs", _epochs(sizes, _FIT), f"passes over {sizes.num_transitions:,} logged steps")
        yield _set("max_new_tokens", max(128, sizes.prediction_tokens), "the longest logged step, by its characters")
        yield _set("max_prompt_tokens", _prompt(sizes))
    yield ""
    if asked.model:
        yield "[retrieval]"
        yield _set("num_demonstrations", 3)
        yield _set("demonstrations", "whole")
        yield ""


def _policy(asked: Asked) -> Iterator[str]:
    sizes = asked.sizes
    yield "[policy]"
    if asked.model:
        yield _set("template", "chat")
    if sizes:
        yield _set("max_action_tokens", sizes.action_tokens, "the longest logged action, by its characters")
        yield _set("max_episode_tokens", _prompt(sizes) + sizes.action_tokens)
    yield ""
    if sizes:
        yield "[start]"
        if sizes.num_successes:
            yield _set("sft.epochs", _epochs(sizes, _CLONING), "passes over the logged successes")
        else:
            yield _set("from", "base", "no logged episode succeeded, so none can be cloned")
        yield ""


def _training(asked: Asked) -> Iterator[str]:
    yield "[curriculum]"
    yield _set("generate", asked.environment != "logs", "variations of tasks, written by the experience model")
    yield ""
    yield "[rl]"
    yield _set("groups_per_round", 16)
    yield ""
    yield "[dream]"
    yield _set("num_rounds", 6)
    yield _set("calibrate_every", 3)
    if asked.environment == "logs":
        yield _set("consolidate_every", 0, "dreamt wins cannot be confirmed for real")
    yield ""


def _epochs(sizes: LogSizes, bounds: tuple[int, int]) -> int:
    fewest, most = bounds
    return max(fewest, min(most, fewest * _STEPS_OF_FEWEST // sizes.num_transitions))


def _prompt(sizes: LogSizes) -> int:
    return max(_LEAST_PROMPT, sizes.prompt_tokens + _BESIDE_STATE)


def _set(name: str, value: Any, why: str = "") -> str:
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    return f"{line}  # {why}" if why else line
