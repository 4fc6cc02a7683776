"""Prove a policy in the real environment: evaluate it on test tasks, judge it by the gate, offer it as champion."""

from collections.abc import Collection, Mapping
from typing import Any

from flows.loop.lineage import Lineage, evaluated, log
from infra.context import blobs, run_context
from infra.orchestration.announcements import CALIBRATION_ALARM, announce
from infra.promotion.panels import take_panel
from schemas.errors import ConflictError, GateRefused
from schemas.plain import references_in
from schemas.recipes.digests import digest_of
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from schemas.runs import Evaluation, Judgement, PolicyKey
from tasks.data.verify_rows import verify_rows
from tasks.judging.judge import judge_candidate
from tasks.judging.promote import champion_to_beat, is_in_force, is_open, objections, promote, record_judgement

_BETWEEN_PANELS = 100_000
"""Distance between the first test tasks of two consecutive panels."""


def evaluate_and_judge(recipe: Recipe, made: Lineage, *, anew: bool = False) -> Judgement:
    """Judge the dream-trained policy against the starting policy and the champion; record and return the judgement.

    Args:
        recipe: Recipe of the run.
        made: Lineage of the run; evaluations and verdict are added.
        anew: Judge again a policy the run judged before: against today's champion, on a new panel unless pinned.

    Raises:
        IntegrityError: stored rows of the run do not match their digests.
    """
    verify_rows(references_in(made.artifacts.plain()))
    made.artifacts.drop_champion()
    champion = champion_to_beat(made.artifacts.dream, anew=anew)
    if champion:
        made.artifacts.champion = champion
    named: tuple[PolicyKey, ...] = ("start", "dream", "champion")
    policies: dict[PolicyKey, Reference] = {
        name: made.artifacts.policy(name) for name in named if name in made.artifacts
    }
    panel = panel_of(recipe, "dream", anew=anew)
    made.evaluations |= all_held_out(recipe, made, policies, panel)
    made.gate = judged(recipe, made, "dream", "start", made.evaluations, champion, panel)
    if not made.gate["calibrated"]:
        alarm(made.evaluations["dream"])
    return made.gate


def evaluate_and_judge_fine_tuned(recipe: Recipe, made: Lineage, *, anew: bool = False) -> Judgement:
    """Judge the policy after sim-to-real against the policy it started from and the champion."""
    candidate, first = made.artifacts.sim_to_real, made.artifacts.dream
    champion = champion_to_beat(candidate, anew=anew)
    policies: dict[PolicyKey, Reference] = {"dream": first, "sim_to_real": candidate}
    if champion:
        policies["champion"] = champion
    panel = panel_of(recipe, "sim_to_real", anew=anew)
    evaluations = all_held_out(recipe, made, policies, panel, dreamt=("sim_to_real",))
    made.evaluations["sim_to_real"] = evaluations["sim_to_real"]
    made.real_gate = judged(recipe, made, "sim_to_real", "dream", evaluations, champion, panel)
    return made.real_gate


def judged(
    recipe: Recipe,
    made: Lineage,
    name: PolicyKey,
    baseline: PolicyKey,
    evaluations: dict[PolicyKey, Evaluation],
    champion: Reference | None,
    panel: int,
) -> Judgement:
    """Return the gate's verdict on a policy, recorded in the ledger and the registry."""
    candidate = made.artifacts.policy(name)
    gate: Judgement = judge_candidate(
        candidate,
        evaluations[name],
        made.artifacts.policy(baseline),
        evaluations[baseline],
        recipe.gate,
        champion,
        evaluations.get("champion"),
        {"number": panel, "fresh": has_fresh_panels(recipe), "pinned": recipe.evaluation.panel == "pinned"},
    )
    gain = gate["gain"]
    stage = "gate" if name == "dream" else f"gate {name}"
    log(stage, {"gain": gain["mean"], "gain_low": gain["low"], "passed": float(gate["passed"])})
    # If no group taught anything, the candidate is its baseline, which is already registered and judged.
    if candidate.sha256 == made.artifacts.policy(baseline).sha256:
        made.versions[name] = made.versions.get(baseline) or record_judgement(candidate, gate)
    else:
        tags = {"fine_tuned_from": made.versions[baseline]} if baseline in made.versions else {}
        made.versions[name] = record_judgement(candidate, gate, **tags)
    return gate


def panel_of(recipe: Recipe, name: str, *, anew: bool = False) -> int:
    """Return the number of the panel of test tasks on which to judge a policy of this run; pinned tasks are panel 0."""
    if recipe.evaluation.panel == "pinned":
        return 0
    test_tasks = recipe.environment.model_dump(mode="json")
    for of_others in ("num_train_tasks", "num_valid_tasks", "num_test_tasks", "max_steps"):
        test_tasks.pop(of_others)
    judgement = f"{run_context().run_id}/{name}{f'/{run_context().steps.started_utc}' if anew else ''}"
    return take_panel(blobs(), digest_of(test_tasks)[:16], judgement)


def has_fresh_panels(recipe: Recipe) -> bool:
    """Return whether each judgement gets test tasks of its own."""
    return recipe.evaluation.panel == "fresh" and recipe.environment.has_endless_tasks


def all_held_out(
    recipe: Recipe,
    made: Lineage,
    policies: dict[PolicyKey, Reference],
    panel: int,
    dreamt: Collection[PolicyKey] = ("start", "dream", "champion"),
) -> dict[PolicyKey, Evaluation]:
    """Evaluate several policies on the same test tasks; a policy under two names is played once.

    Args:
        recipe: Recipe of the run.
        made: Lineage of the run.
        policies: Policies by name.
        panel: Number of the panel of test tasks.
        dreamt: Names of the policies that dream these tasks, too. Others were measured in dreams on an earlier panel.
    """
    in_dreams = {policies[name].sha256 for name in dreamt if name in policies}
    measured: dict[str, Evaluation] = {}
    for name, policy in policies.items():
        if policy.sha256 not in measured:
            is_dreamt = policy.sha256 in in_dreams
            measured[policy.sha256] = held_out(recipe, made, name, policy, panel, is_dreamt=is_dreamt)
    return {name: measured[policy.sha256] for name, policy in policies.items()}


def held_out(
    recipe: Recipe, made: Lineage, name: str, policy: Reference, panel: int, *, is_dreamt: bool = True
) -> Evaluation:
    """Evaluate a policy on a panel of test tasks, for real and in dreams.

    With fixed tasks, a greedy policy would only repeat itself, so every panel is the same evaluation, dreams included.
    """
    fresh = has_fresh_panels(recipe)
    first = panel * _BETWEEN_PANELS if fresh else 0
    number = panel if fresh or recipe.evaluation.temperature > 0 else 0
    asked = recipe if is_dreamt or number == 0 else recipe.without_dreams
    num_tasks = recipe.environment.num_test_tasks
    return evaluated(asked, made, f"evaluate {name}", policy, "test", num_tasks, number, first)


def promote_if_allowed(recipe: Recipe, made: Lineage, name: PolicyKey, gate: Judgement) -> None:
    """Promote a candidate that needs no approval and meets no objection; else say what it waits for."""
    say, candidate = run_context().display.say, made.artifacts.policy(name)
    if is_in_force(candidate):
        made.promoted = name
    elif reasons := objections(gate):
        say(f"{name} is not promoted: {'; '.join(reasons)}")
    elif recipe.gate.needs_approval:
        if is_open(candidate, gate["report"]):
            say(f"{name} waits for approval: dreamgym promote {run_context().run_id}")
    else:
        try:
            promote(candidate, gate["report"], run_context().run_id)
            made.promoted = name
        except (GateRefused, ConflictError) as refused:
            say(f"{name} is not promoted: {refused}")


def alarm(measured: Mapping[str, Any]) -> None:
    """Announce that dreams do not hold for real, so that a schedule can be paused."""
    facts = {name: measured[name] for name in ("dream_real_gap", "outcome_agreement")}
    announce(CALIBRATION_ALARM, run_context().run_id, {"run_id": run_context().run_id, **facts})
