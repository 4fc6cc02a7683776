"""The DreamGym loop: from logs of a real environment to a policy trained in a dream and proven for real.

    ingest -> annotate -> start policy -> its on-policy episodes -> experience model
           -> [ propose -> dream -> train -> calibrate ]* -> evaluate -> gate -> promote -> fine-tune for real

Every step is a versioned task, so a run that was killed resumes after its last finished step.
"""

from functools import partial
from typing import Any

from prefect import flow

from flows.loop.evaluate_and_judge import alarm, evaluate_and_judge, promote_if_allowed
from flows.loop.fine_tune import fine_tune_for_real
from flows.loop.flow_page import log_to_page, show_champion
from flows.loop.lineage import Lineage, evaluated, log, numbers_in, show_rollouts
from flows.loop.prefetch import Prefetcher
from flows.loop.prepare_models import fitted, prepare_models
from flows.stage import Stage
from infra.context import run_context
from schemas.recipes.recipe import DreamRecipe, Recipe
from schemas.records import Reference
from schemas.runs import LeftBehind
from tasks.data.annotate import annotate
from tasks.data.pool_tasks import pool_tasks
from tasks.judging.measure_fidelity import measure_fidelity
from tasks.learning.train_policy import train_policy
from tasks.playing.dream import dream
from tasks.playing.play_where_dreams_err import play_where_dreams_err
from tasks.playing.propose_tasks import propose_tasks, vary_tasks
from tasks.running.engines import publish_weights
from tasks.running.pins import with_encoder_pinned


@flow(name="cycle", validate_parameters=False)
def cycle(recipe: Recipe, until: Stage, left_behind: LeftBehind) -> Lineage:
    """Run a recipe up to and including a stage.

    Args:
        recipe: Recipe to run.
        until: Last stage to run.
        left_behind: Results of earlier runs that this one reads.
    """
    log_to_page()
    made = Lineage(left_behind=left_behind)
    recipe = with_encoder_pinned(recipe)
    prepare_models(recipe, made, only_ingest=until is Stage.INGEST)
    if until in (Stage.INGEST, Stage.EXPERIENCE):
        return made
    train_in_the_dream(recipe, made)
    if until is Stage.DREAM:
        return made
    evaluate_and_judge(recipe, made)
    promote_if_allowed(recipe, made, "dream", made.gate)
    if until is Stage.REAL and (made.promoted or recipe.real.unpromoted):
        fine_tune_for_real(recipe, made)
    show_champion(made)
    return made


def train_in_the_dream(recipe: Recipe, made: Lineage) -> None:
    """Propose, dream and train in rounds, until the budget ends or the dream drifts from reality."""
    with Prefetcher[Reference](concurrent=recipe.dream.max_staleness > 0) as dreams:
        train_on(dreams, recipe, made)


def train_on(dreams: Prefetcher[Reference], recipe: Recipe, made: Lineage) -> None:
    """Dream, train on the dreamt groups, and select the policy with the best real success on valid tasks."""
    experience = list(made.references["experience"])
    start = policy = best = made.references["start"]
    publish_weights("policy", policy)
    pool, entropies, dreamt_so_far = pool_tasks(experience), made.entropies, list[Reference]()
    best_success = calibrate(recipe, made, policy, round=0)["real_success"]
    for round in range(recipe.dream.num_rounds):
        begin(dreams, recipe, made, policy, pool, [*made.references["experience"], *dreamt_so_far], round)
        dreamt = dreams.take()
        show_rollouts("dream training", dreamt, round)
        trained = train_policy(policy, start, dreamt, recipe.grpo, recipe.training, "dream", round)
        policy = trained["policy"]
        publish_weights("policy", policy)
        entropies |= trained["entropies"]
        made.rounds.append(trained["metrics"])
        log("dream training", trained["metrics"], round)
        draw_curve(recipe, round, trained["metrics"])
        dreamt_so_far.append(dreamt)
        if recipe.curriculum.generate:
            model = made.references["experience_model"]
            pool = vary_tasks(
                pool, entropies, model, recipe.curriculum, recipe.environment, recipe.engine, recipe.seed, round
            )
        if is_calibrated_after(recipe.dream, round):
            calibration = calibrate(recipe, made, policy, round + 1)
            if calibration["real_success"] >= best_success:
                best, best_success = policy, calibration["real_success"]
            if abs(calibration["dream_real_gap"]) > recipe.dream.max_gap and has_parted(
                recipe, made, policy, dreamt, calibration, round
            ):
                break
    made.references |= {"dream": best, "pool": pool, "dreams": dreamt_so_far}


def draw_curve(recipe: Recipe, round: int, metrics: dict[str, Any]) -> None:
    """Log a point of the learning curve to the run itself, and a line to the flow run's logs."""
    success = metrics.get("dream_success")
    told = "no episode ended" if success is None else f"dream success {success:.0%}"
    run_context().display.log(f"round {round + 1} of {recipe.dream.num_rounds}: {told}")
    if success is not None:
        run_context().tracker.cycle().log_metrics({"curve_dream_success": success}, round + 1)


def has_parted(
    recipe: Recipe, made: Lineage, policy: Reference, dreamt: Reference, calibration: dict[str, Any], round: int
) -> bool:
    """Return whether training in the dream stops as dream and real have parted; if not, refit the experience model."""
    told = f"after round {round + 1}: dream and real differ by {calibration['dream_real_gap']:+.0%}"
    alarm(calibration)
    if recipe.dream.when_parted == "stop":
        run_context().display.say(f"stopped {told}")
        return True
    if round + 1 < recipe.dream.num_rounds:
        run_context().display.say(f"refitting the experience model {told}")
        refit(recipe, made, policy, dreamt, round)
    return False


def refit(recipe: Recipe, made: Lineage, policy: Reference, dreamt: Reference, round: int) -> None:
    """Fit the experience model to real episodes of the present policy, played where its dreams erred most."""
    asked, grpo, learnt = recipe.dream, recipe.grpo, made.references["experience"]
    played = play_where_dreams_err(dreamt, policy, recipe.real_play, asked.refit_episodes, grpo.temperature, round)
    own = annotate(played, recipe.annotate, recipe.environment, recipe.retrieval, recipe.seed, policy.sha256)
    model = fitted(recipe, made.references["experience_model"], [*learnt, own], learnt)
    made.references |= {"experience": [*learnt, own], "experience_model": model}
    num_steps = made.real_interactions.get("dream", 0) + int(played.notes["num_real_steps"])
    made.real_interactions["dream"] = num_steps
    log("refit", {"real_steps": num_steps}, round + 1)


def begin(
    dreams: Prefetcher[Reference],
    recipe: Recipe,
    made: Lineage,
    policy: Reference,
    pool: Reference,
    experience: list[Reference],
    round: int,
) -> None:
    """Begin the rounds that may be dreamt now: this one, and later ones if stale rollouts are allowed."""
    asked, grpo, model = recipe.dream, recipe.grpo, made.references["experience_model"]
    for later in range(dreams.num_begun, last_to_begin(asked, round) + 1):
        tasks = propose_tasks(pool, made.entropies, recipe.curriculum, grpo.groups_per_round, recipe.seed, later)
        seen = list(experience)
        dreams.begin(
            partial(dream, tasks, policy, model, seen, recipe.play, grpo, later, asked.num_shards, asked.max_staleness)
        )


def last_to_begin(asked: DreamRecipe, round: int) -> int:
    """Return the last round that may be dreamt before `round` has been trained on.

    No round beyond a calibration, since training may end there.
    """
    stalest = range(round, min(round + asked.max_staleness, asked.num_rounds - 1))
    return next((one for one in stalest if is_calibrated_after(asked, one)), stalest.stop)


def is_calibrated_after(asked: DreamRecipe, round: int) -> bool:
    """Return whether dream and real are compared between a round and the next."""
    return (round + 1) % asked.calibrate_every == 0 or round + 1 == asked.num_rounds


def calibrate(recipe: Recipe, made: Lineage, policy: Reference, round: int) -> dict[str, Any]:
    """Compare dream and real success on valid tasks, which are never trained on."""
    calibration = evaluated(recipe, made, "calibrate", policy, "valid", recipe.environment.num_valid_tasks, round)
    model, experience = made.references["experience_model"], made.references["experience"]
    one_step = measure_fidelity(model, policy, experience, recipe.play, recipe.grpo.temperature)
    log("one-step fidelity", one_step, round)
    calibration |= {f"one_step_{name}": value for name, value in one_step.items()}
    made.calibrations.append({"round": round, **numbers_in(calibration)})
    success = {f"curve_valid_{name}": calibration[name] for name in ("real_success", "dream_success")}
    run_context().tracker.cycle().log_metrics(success, round)
    told = f"{calibration['real_success']:.1%} real, {calibration['dream_success']:.1%} dream"
    run_context().display.log(f"calibration after round {round}: {told}")
    return calibration
