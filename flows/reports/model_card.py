"""Model card of an exported policy: description, measurements, lineage and prompt format."""

import json
from pathlib import Path
from typing import Any

import jinja2

from flows.reports.show_run import with_interval
from flows.runs.find_policy import FoundPolicy
from models.text.policies.agent_prompt import agent_prompt
from schemas.plain import references_in, restored
from schemas.policies import POLICY_LABELS
from schemas.recipes.recipe import stored_recipe

_TEMPLATE = Path(__file__).with_name("model_card.md.jinja")
_INTRODUCTION = (
    "A language agent, trained with DreamGym: by reinforcement learning in a learnt model of its environment."
)


def model_card(found: FoundPolicy) -> str:
    """Return Markdown with the YAML header that the Hugging Face hub reads; it contains no addresses and no secrets."""
    environment = jinja2.Environment(
        autoescape=False,  # noqa: S701 - Markdown, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.from_string(_TEMPLATE.read_text())
    return template.render(found=found, introduction=_INTRODUCTION, **_facts(found.summary))


def _facts(summary: dict[str, Any] | None) -> dict[str, Any]:
    """Return the facts about a run that the template shows."""
    if summary is None:
        return {"run": None, "base_model": ""}
    recipe, results = summary["recipe"], summary["results"]
    policy = stored_recipe(recipe).policy
    return {
        "run": summary,
        "base_model": recipe["backbone"]["model"] if recipe["backbone"]["revision"] else "",
        "measured": [(label, results[key]) for key, label in POLICY_LABELS.items() if key in results],
        "unproven": summary.get("unproven"),
        "dreamt": summary.get("dreamt", {}).get("dream"),
        "gain": with_interval(summary["gate"]["gain"]) if summary["gate"] else "",
        "lineage": _digests(summary["lineage"]),
        "recipe": json.dumps(recipe, indent=1),
        "policy": policy,
        "prompt": json.dumps(agent_prompt(policy)),
    }


def _digests(lineage: dict[str, Any]) -> dict[str, list[str]]:
    """Return digests by name, without the locations of the objects, which are private to this home."""
    return {name: [one.sha256 for one in references_in([restored(value)])] for name, value in lineage.items()}
