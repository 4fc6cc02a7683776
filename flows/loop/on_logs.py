"""The loop without a real environment: logs are held out, policies dream their tasks, and no verdict passes."""

from flows.loop.lineage import Lineage, log, numbers_in
from infra.context import run_context
from infra.progress.stage_labels import EVALUATION_LABELS
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from schemas.runs import DreamtEvaluation, UnprovenVerdict
from tasks.data.held_out_logs import hold_out
from tasks.judging.on_logs.dream_logged_tasks import dream_logged_tasks
from tasks.judging.on_logs.judge_unproven import judge_unproven
from tasks.judging.on_logs.measure_on_logs import measure_on_logs
from tasks.judging.promote import champion_to_beat, is_in_force, record_judgement


def logs_to_learn_from(recipe: Recipe, made: Lineage) -> Reference:
    """Return the run's logs, without those that are held out where there is no real environment."""
    artifacts = made.artifacts
    if recipe.environment.can_be_played:
        return artifacts.logs
    by_split: dict[str, Reference] = hold_out(artifacts.logs)
    artifacts.valid_logs, artifacts.test_logs = by_split["valid"], by_split["test"]
    return by_split["train"]


def measure_model_on_logs(recipe: Recipe, made: Lineage, held_out: Reference, stage: str) -> None:
    """Measure the experience model on held-out logged episodes, and log it under a name."""
    artifacts = made.artifacts
    with run_context().display.one_line("one-step fidelity") as conclude:
        made.fidelity = measured = measure_on_logs(
            artifacts.experience_model, artifacts.experience, held_out, recipe.play
        )
        conclude(
            f"word F1 of next states {measured['next_state_f1']:.2f}, unchanged {measured['unchanged_f1']:.2f}, "
            f"neighbour {measured['neighbour_f1']:.2f}"
        )
    log(stage, measured)


def calibrate_in_dreams(recipe: Recipe, made: Lineage, policy: Reference, round: int) -> DreamtEvaluation:
    """Dream held-out logged tasks during training; nothing is there to compare the dreams with."""
    num_tasks = recipe.environment.num_valid_tasks
    evaluation = dreamt(recipe, made, "calibrate", policy, made.artifacts.valid_logs, num_tasks, round)
    made.calibrations.append({"round": round, **numbers_in(evaluation)})
    run_context().tracker.cycle().log_metrics({"curve_valid_dream_success": evaluation["dream_success"]}, round)
    return evaluation


def dreamt(
    recipe: Recipe, made: Lineage, name: str, policy: Reference, held_out: Reference, num_tasks: int, round: int = 0
) -> DreamtEvaluation:
    """Return success of a policy in dreams of held-out logged tasks, logged under a name."""
    artifacts = made.artifacts
    with run_context().display.one_line(EVALUATION_LABELS.get(name, name)) as conclude:
        evaluation: DreamtEvaluation = dream_logged_tasks(
            name,
            policy,
            artifacts.experience_model,
            artifacts.experience,
            held_out,
            recipe.play,
            recipe.evaluation,
            num_tasks,
        )
        conclude(f"dream {evaluation['dream_success']:.1%}")
    log(name, evaluation, round)
    return evaluation


def judge_in_dreams(recipe: Recipe, made: Lineage) -> None:
    """Judge the dream-trained policy as far as logs allow, and record the verdict, which says that nothing is proven."""
    artifacts, num_tasks = made.artifacts, recipe.environment.num_test_tasks
    measure_model_on_logs(recipe, made, artifacts.test_logs, "experience model on test logs")
    for name in ("start", "dream"):
        policy = artifacts.policy(name)
        made.dreamt[name] = dreamt(recipe, made, f"evaluate {name}", policy, artifacts.test_logs, num_tasks)
    champion = champion_to_beat(artifacts.dream)
    verdict: UnprovenVerdict = judge_unproven(
        artifacts.dream,
        made.dreamt["dream"],
        artifacts.start,
        made.dreamt["start"],
        made.fidelity,
        recipe.gate,
        champion,
    )
    made.unproven, made.versions["dream"] = verdict, record_judgement(artifacts.dream, verdict)
    if is_in_force(artifacts.dream):
        made.promoted = "dream"
    else:
        run_context().display.say(f"dream is not promoted: {'; '.join(verdict['reasons'])}")
