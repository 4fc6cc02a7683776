"""Training in the dream: rounds of propose, dream and train, with calibrations against the real environment."""

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Any

from flows.loop.consolidation import Consolidation, is_due
from flows.loop.evaluate_and_judge import alarm
from flows.loop.judging import StateValues
from flows.loop.lineage import Lineage, evaluated, log, numbers_in, show_rollouts, success_in
from flows.loop.on_logs import calibrate_in_dreams
from flows.loop.prepare_models import newly_fitted
from flows.loop.rounds import demonstrations, dream_round, earlier_rounds, is_validated_after, observe, rollout_metrics
from infra.context import run_context
from infra.running.prefetch import Prefetcher
from models.methods.generators import Generator
from models.methods.importance import corrected_for
from models.methods.method import open_method
from schemas.recipes.learning import DreamRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.curriculum.vary_tasks import vary_tasks
from tasks.data.annotate import annotate
from tasks.data.pool_tasks import pool_tasks
from tasks.judging.measure_fidelity import measure_fidelity
from tasks.learning.best_policy import BestPolicy
from tasks.learning.round_policies import RoundPolicies
from tasks.learning.train_generator import train_generator
from tasks.learning.train_policy import train_policy
from tasks.playing.play_where_dreams_err import play_where_dreams_err
from tasks.running.engines import publish_weights


def train_in_the_dream(recipe: Recipe, made: Lineage) -> None:
    """Propose, dream and train in rounds, until the budget ends, the policy has learnt, or the dream drifts from reality."""
    with Prefetcher[list[Reference]](concurrent=recipe.dream.max_staleness > 0) as dreams:
        train_on(dreams, recipe, made)


def train_on(dreams: Prefetcher[list[Reference]], recipe: Recipe, made: Lineage) -> None:
    """Dream, train on the dreamt groups, and select the policy with the best success on valid tasks: real, or dreamt on logs alone."""
    experience = list(made.artifacts.experience)
    reference = policy = made.artifacts.start
    consolidation = Consolidation(recipe, made, "dream", recipe.dream)
    state_values, policies = StateValues(recipe, made), RoundPolicies(1 + recipe.dream.max_staleness)
    publish_weights("policy", policy)
    pool, rounds = pool_tasks(experience), list[list[Reference]]()
    best = BestPolicy(policy, _success(calibrate(recipe, made, policy, round=0)))
    for round in range(recipe.dream.num_rounds):
        with run_context().display.round(round + 1, recipe.dream.num_rounds) as conclude:
            begin(dreams, recipe, made, policy, pool, [*made.artifacts.experience, *chain(*rounds)], round)
            dreamt = dreams.take()
            show_rollouts("dream training", dreamt[0], round)
            trained = trained_on(recipe, made, policy, reference, rounds, dreamt, state_values)
            policies.add(trained["policy"], made_from=policy)
            policy, reference = consolidation.after(round, dreamt, trained["policy"], reference)
            publish_weights("policy", policy)
            observe(recipe, made, dreamt)
            metrics = trained["metrics"] | rollout_metrics(dreamt)
            made.rounds.append(metrics)
            log("dream training", metrics, round)
            draw_curve(round, metrics)
            rounds.append(dreamt)
            pool = with_variations(recipe, made, pool, round)
            calibration: dict[str, Any] = {}
            if is_calibrated_after(recipe.dream, round):
                calibration = calibrate(recipe, made, policy, round + 1)
                improve_generator(recipe, made, pool, [*chain(*rounds[-recipe.dream.calibrate_every :])])
            conclude(result_of_round(made))
            if not calibration:
                continue
            best.compare(policy, _success(calibration))
            policies.measured(policy, best.policy)
            has_parted = abs(calibration.get("dream_real_gap", 0)) > recipe.dream.max_gap
            if has_parted and ends_for_its_gap(recipe, made, policy, dreamt, calibration, round):
                break
            if has_learnt_enough(recipe.dream, best, calibration, round):
                break
    made.artifacts.dream, made.artifacts.pool, made.artifacts.dreams = best.policy, pool, [*chain(*rounds)]


def trained_on(
    recipe: Recipe,
    made: Lineage,
    policy: Reference,
    reference: Reference,
    rounds: list[list[Reference]],
    dreamt: list[Reference],
    state_values: StateValues,
) -> dict[str, Any]:
    """Return the policy after a round of updates on its groups, and its metrics.

    Args:
        recipe: Recipe of the run.
        made: Lineage of the run.
        policy: Policy to train.
        reference: Policy that losses may refer to.
        rounds: Groups of the rounds before.
        dreamt: Groups of this round.
        state_values: Values that the advantage asks for.
    """
    rl, round = corrected_for(recipe.rl, recipe.engine), len(rounds)
    earlier, values = earlier_rounds(rl, rounds), state_values.of(policy, dreamt, round)
    training, shown = (recipe.training, recipe.environment), demonstrations(recipe, made)
    return train_policy(policy, reference, dreamt, rl, *training, "dream", round, earlier, values, shown)


def with_variations(recipe: Recipe, made: Lineage, pool: Reference, round: int) -> Reference:
    """Return the pool with variations of its tasks added, if the recipe generates any."""
    if not recipe.curriculum.generate:
        return pool
    return vary_tasks(
        pool,
        made.curriculum,
        generator(made),
        recipe.curriculum,
        recipe.experience,
        recipe.environment,
        recipe.engine,
        recipe.seed,
        round,
    )


def improve_generator(recipe: Recipe, made: Lineage, pool: Reference, groups: list[Reference]) -> None:
    """Train the task generator on what its tasks were worth since the last calibration, if the recipe says so."""
    if open_method(Generator, recipe.curriculum.generator).trains:
        made.artifacts.generator = train_generator(
            generator(made), pool, groups, recipe.curriculum, recipe.experience, recipe.training, recipe.seed
        )


def generator(made: Lineage) -> Reference:
    """Return the model that generates tasks: the experience model, or what its training has made of it."""
    artifacts = made.artifacts
    return artifacts.generator if "generator" in artifacts else artifacts.experience_model


def draw_curve(round: int, metrics: dict[str, Any]) -> None:
    """Log a point of the learning curve to the run itself."""
    if "dream_success" in metrics:
        run_context().tracker.cycle().log_metrics({"curve_dream_success": metrics["dream_success"]}, round + 1)


def result_of_round(made: Lineage) -> str:
    """Return dream success of the last round, and real success of the last calibration, as text."""
    success = made.rounds[-1].get("dream_success")
    dreamt = "no dream ended" if success is None else f"dream {success:.0%}"
    kind = "real" if "real_success" in made.calibrations[-1] else "dream"
    return f"{dreamt}, {kind} (valid) {_success(made.calibrations[-1]):.0%}"


def _success(calibration: Mapping[str, Any]) -> float:
    """Return real success on valid tasks, or dreamt success where there is no real environment."""
    return calibration["real_success"] if "real_success" in calibration else calibration["dream_success"]


def has_learnt_enough(asked: DreamRecipe, best: BestPolicy, calibration: dict[str, Any], round: int) -> bool:
    """Return whether further rounds are not worth their time, and say why."""
    reason = best.reason_to_end(asked, calibration)
    if reason and round + 1 < asked.num_rounds:
        run_context().display.say(f"ended after round {round + 1} of {asked.num_rounds}: {reason}")
    return bool(reason)


def ends_for_its_gap(
    recipe: Recipe, made: Lineage, policy: Reference, dreamt: list[Reference], calibration: dict[str, Any], round: int
) -> bool:
    """Return whether training in the dream stops as dream and real have parted; if not, refit the experience model."""
    where = f"after round {round + 1}: dream and real differ by {calibration['dream_real_gap']:+.0%}"
    alarm(calibration)
    if recipe.dream.when_gap_exceeded == "stop":
        run_context().display.say(f"stopped {where}")
        return True
    if round + 1 < recipe.dream.num_rounds:
        run_context().display.say(f"refitting the experience model {where}")
        refit(recipe, made, policy, dreamt, round)
    return False


def refit(recipe: Recipe, made: Lineage, policy: Reference, dreamt: list[Reference], round: int) -> None:
    """Fit the experience model to real episodes of the present policy, played where its dreams erred most."""
    asked, learnt = recipe.dream, made.artifacts.experience
    played = play_where_dreams_err(dreamt, policy, recipe.real_play, asked.refit_episodes, recipe.rl.temperature, round)
    own = annotate(played, recipe.annotate, recipe.environment, recipe.retrieval, recipe.seed, policy.sha256)
    model = newly_fitted(recipe, made.artifacts.experience_model, [*learnt, own], learnt)
    made.artifacts.experience, made.artifacts.experience_model = [*learnt, own], model
    num_steps = made.real_interactions.get("dream", 0) + int(played.notes["num_real_steps"])
    made.real_interactions["dream"] = num_steps
    log("refit", {"real_steps": num_steps}, round + 1)


def begin(
    dreams: Prefetcher[list[Reference]],
    recipe: Recipe,
    made: Lineage,
    policy: Reference,
    pool: Reference,
    experience: list[Reference],
    round: int,
) -> None:
    """Begin the rounds that may be dreamt now: this one, and later ones if stale rollouts are allowed."""
    model, state = made.artifacts.experience_model, made.curriculum
    for later in range(dreams.num_begun, last_to_begin(recipe.dream, round) + 1):
        dreams.begin(partial(dream_round, recipe, pool, state, policy, model, list(experience), later))


def last_to_begin(asked: DreamRecipe, round: int) -> int:
    """Return the last round that may be dreamt before `round` has been trained on.

    No round beyond a calibration, since training may end there, or a consolidation, since another policy comes of it.
    """
    stalest = range(round, min(round + asked.max_staleness, asked.num_rounds - 1))
    return next(
        (one for one in stalest if is_calibrated_after(asked, one) or is_due(asked.consolidate_every, one)),
        stalest.stop,
    )


def is_calibrated_after(asked: DreamRecipe, round: int) -> bool:
    """Return whether dream and real are compared between a round and the next."""
    return is_validated_after(round, asked.num_rounds, asked.calibrate_every)


def calibrate(recipe: Recipe, made: Lineage, policy: Reference, round: int) -> dict[str, Any]:
    """Compare dream and real success on valid tasks, which are never trained on; on logs alone, dream them only."""
    if not recipe.environment.can_be_played:
        return dict(calibrate_in_dreams(recipe, made, policy, round))
    model, experience = made.artifacts.experience_model, made.artifacts.experience
    with run_context().display.one_line("calibrate") as conclude:
        calibration = evaluated(recipe, made, "calibrate", policy, "valid", recipe.environment.num_valid_tasks, round)
        conclude(success_in(calibration))
        one_step = measure_fidelity(model, policy, experience, recipe.play, recipe.rl.temperature)
    log("one-step fidelity", one_step, round)
    measured = {**calibration, **{f"one_step_{name}": value for name, value in one_step.items()}}
    made.calibrations.append({"round": round, **numbers_in(measured)})
    success = {f"curve_valid_{name}": float(measured[name]) for name in ("real_success", "dream_success")}
    run_context().tracker.cycle().log_metrics(success, round)
    return measured
