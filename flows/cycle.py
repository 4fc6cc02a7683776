"""One cycle: from logs of a real environment to a policy trained in a dream and proved for real.

    ingest -> annotate -> start policy -> its own mistakes -> experience model
           -> [ propose -> dream -> train -> calibrate ]* -> evaluate -> gate -> promote -> fine-tune for real

The body reads like a table of contents; every step is a versioned task, so a cycle that was killed and
is run again goes on from the last step that finished.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prefect import flow

from flows.ahead import Ahead
from flows.stage import Stage
from infra.announcements import CALIBRATION_ALARM, TRANSITIONS_COMMITTED, announce
from infra.doors import cycle as running
from schemas.errors import GateRefused, Overtaken
from schemas.plain import references_in
from schemas.recipe import DreamRecipe, GrpoRecipe, Recipe
from schemas.records import Reference, Trajectory
from tasks.annotate import annotate
from tasks.backbone import fetch_backbone, folder_digest
from tasks.backbone_from_logs import backbone_from_logs
from tasks.clone_policy import clone_policy
from tasks.dream import dream
from tasks.engines import succeed
from tasks.evaluate import evaluate
from tasks.fit_experience_model import cut_off, fit_experience_model
from tasks.ingest import ingest
from tasks.judge import judge_candidate
from tasks.keep import get_trajectories
from tasks.logs.read_log import log_digest
from tasks.measure_fidelity import measure_fidelity
from tasks.pins import pin_encoder
from tasks.play_policy import play_policy
from tasks.play_real_groups import play_real_groups
from tasks.pool_tasks import pool_tasks
from tasks.promote import is_open, objections, present_champion, promote, record_judgement, register_fine_tuned
from tasks.propose_tasks import propose_tasks, vary_tasks
from tasks.train_policy import train_policy
from tasks.verify_rows import verify_rows


@dataclass
class Lineage:
    """Everything a cycle made so far, by reference, and what was measured."""

    references: dict[str, Any] = field(default_factory=dict)
    evaluations: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    entropies: dict[str, float] = field(default_factory=dict)
    """Latest reward entropy by task id."""
    fidelity: dict[str, float] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """In the model registry, by policy."""
    promoted: bool = False
    """Whether the candidate is champion: by this run, or by one of the same cycle that was cut off."""
    real_interactions: int = 0
    """Environment steps that the sim-to-real stage trained on."""


@flow(name="cycle", validate_parameters=False)
def cycle(recipe: Recipe, until: Stage = Stage.REAL) -> Lineage:
    """Run a recipe up to and with a stage."""
    made = Lineage()
    recipe = pinned(recipe)
    learn_the_environment(recipe, made, only_ingest=until is Stage.INGEST)
    if until in (Stage.INGEST, Stage.EXPERIENCE):
        return made
    train_in_the_dream(recipe, made)
    if until is Stage.DREAM:
        return made
    prove(recipe, made)
    offer(recipe, made)
    if until is Stage.REAL and made.gate["passed"]:
        fine_tune_for_real(recipe, made)
    return made


def pinned(recipe: Recipe) -> Recipe:
    """The recipe with what it names by folder pinned to today's content."""
    return recipe.model_copy(update={"retrieval": pin_encoder(recipe.retrieval)})


def learn_the_environment(recipe: Recipe, made: Lineage, *, only_ingest: bool) -> None:
    """Logs, reasoning, the starting policy, its mistakes, and the experience model."""
    environment, seed = recipe.environment, recipe.seed
    log_file, backbone_files = log_digest(recipe.ingest.path), folder_digest(recipe.backbone)
    logs = ingest(environment, recipe.ingest, recipe.retrieval, seed, log_file)
    made.references["logs"] = logs
    log("ingest", logs.notes)
    if only_ingest:
        announce(TRANSITIONS_COMMITTED, logs.sha256, committed(logs))
        return
    annotated = annotate(logs, recipe.annotate, environment, recipe.retrieval, seed)
    backbone = backbone_of(recipe, annotated, backbone_files)
    start = clone_policy(backbone, annotated, recipe.start, recipe.training, environment, seed)
    refit = recipe.experience
    played = play_policy(
        start, recipe.real_play, refit.num_refit_episodes, refit.refit_temperatures, recipe.grpo.renamed_share
    )
    own = annotate(played, recipe.annotate, environment, recipe.retrieval, seed, start.sha256)
    experience = [annotated, own]
    model = fitted(recipe, backbone, experience)
    if warning := cut_off(model, refit.max_new_tokens):
        running().display.say(warning)
    made.references |= {"backbone": backbone, "start": start, "experience": experience, "experience_model": model}
    made.fidelity = measure_fidelity(model, start, experience, recipe.play, recipe.grpo.temperature)
    log("experience model fidelity", made.fidelity)


def backbone_of(recipe: Recipe, logs: Reference, backbone_files: str) -> Reference:
    """What policy and experience model start from: a model that is there, or one made of the logs."""
    asked, shown = recipe.backbone, recipe.experience
    if asked.scratch is None:
        backbone = fetch_backbone(asked, backbone_files)
    else:
        backbone = backbone_from_logs(
            logs, asked.scratch, recipe.retrieval, shown.history_length, shown.with_reasoning, recipe.seed
        )
    return fitted(recipe, backbone, [logs]) if asked.learn_transitions else backbone


def fitted(recipe: Recipe, backbone: Reference, experience: list[Reference]) -> Reference:
    """The backbone, fitted to predict the transitions of some experience."""
    asked, training = recipe.experience.as_fitted, recipe.training
    return fit_experience_model(
        backbone, experience, asked, training, recipe.retrieval, recipe.environment, recipe.seed
    )


def committed(logs: Reference) -> dict[str, str | int]:
    """What a commit of transitions is known by."""
    count = int(logs.notes["num_transitions"])
    return {"table": "transitions", "version": str(logs.notes["table_tag"]), "count": count, "digest": logs.sha256}


def train_in_the_dream(recipe: Recipe, made: Lineage) -> None:
    """Rounds of proposing, dreaming and training, until the budget ends or the dream drifts from reality."""
    with Ahead[Reference](beside=recipe.dream.max_staleness > 0) as dreams:
        train_on(dreams, recipe, made)


def train_on(dreams: Ahead[Reference], recipe: Recipe, made: Lineage) -> None:
    """Begin dreams, train on what was dreamt, and keep the policy that does best for real."""
    model, experience = made.references["experience_model"], list(made.references["experience"])
    start = policy = best = made.references["start"]
    succeed("policy", policy)
    pool, entropies = pool_tasks(experience), made.entropies
    best_success = calibrate(recipe, made, policy, round=0)["real_success"]
    for round in range(recipe.dream.num_rounds):
        begin(dreams, recipe, made, policy, pool, experience, round)
        dreamt = dreams.take()
        show_rollouts("dream training", dreamt, round)
        trained = train_policy(policy, start, dreamt, recipe.grpo, recipe.training, "dream", round)
        policy = trained["policy"]
        succeed("policy", policy)
        entropies |= trained["entropies"]
        made.rounds.append(trained["metrics"])
        log("dream training", trained["metrics"], round)
        experience.append(dreamt)
        if recipe.curriculum.generate:
            pool = vary_tasks(
                pool, entropies, model, recipe.curriculum, recipe.environment, recipe.engine, recipe.seed, round
            )
        if is_calibrated_after(recipe.dream, round):
            calibration = calibrate(recipe, made, policy, round + 1)
            if calibration["real_success"] >= best_success:
                best, best_success = policy, calibration["real_success"]
            if abs(calibration["dream_real_gap"]) > recipe.dream.max_gap:
                running().display.say(
                    f"stopped after round {round + 1}: dream and real differ by {calibration['dream_real_gap']:+.0%}"
                )
                alarm(calibration)
                break
    made.references |= {"dream": best, "pool": pool, "dreams": experience[len(made.references["experience"]) :]}


def begin(
    dreams: Ahead[Reference],
    recipe: Recipe,
    made: Lineage,
    policy: Reference,
    pool: Reference,
    experience: list[Reference],
    round: int,
) -> None:
    """Begin the rounds that may be dreamt by now: this one, and later ones if rollouts may be stale."""
    asked, grpo, model = recipe.dream, recipe.grpo, made.references["experience_model"]
    for later in range(dreams.num_begun, last_to_begin(asked, round) + 1):
        tasks = propose_tasks(pool, made.entropies, recipe.curriculum, grpo.groups_per_round, recipe.seed, later)
        seen = list(experience)
        dreams.begin(
            partial(dream, tasks, policy, model, seen, recipe.play, grpo, later, asked.num_shards, asked.max_staleness)
        )


def last_to_begin(asked: DreamRecipe, round: int) -> int:
    """The last round that may be dreamt before a round has been trained on: none beyond a calibration, which may be the end."""
    stalest = range(round, min(round + asked.max_staleness, asked.num_rounds - 1))
    return next((one for one in stalest if is_calibrated_after(asked, one)), stalest.stop)


def is_calibrated_after(asked: DreamRecipe, round: int) -> bool:
    """Whether dream and real are compared between a round and the next."""
    return (round + 1) % asked.calibrate_every == 0 or round + 1 == asked.num_rounds


def calibrate(recipe: Recipe, made: Lineage, policy: Reference, round: int) -> dict[str, Any]:
    """Dream against real on valid tasks: measured, never trained on."""
    calibration = evaluated(recipe, made, "calibrate", policy, "valid", recipe.environment.num_valid_tasks, round)
    made.calibrations.append({"round": round, **numbers_in(calibration)})
    return calibration


def alarm(calibration: dict[str, Any]) -> None:
    """Announce that dreams do not hold for real, so that a schedule can be paused."""
    measured = {name: calibration[name] for name in ("dream_real_gap", "outcome_agreement")}
    announce(CALIBRATION_ALARM, running().cycle_id, {"cycle_id": running().cycle_id, **measured})


def prove(recipe: Recipe, made: Lineage) -> None:
    """Evaluate start, candidate and champion on the same held-out real tasks, judge, and record the judgement.

    Raises:
        IntegrityError: rows that the cycle stored are not what was written.
    """
    verify_rows(references_in(made.references))
    start, candidate, champion = made.references["start"], made.references["dream"], present_champion()
    made.references.pop("champion", None)
    if champion and champion.sha256 != candidate.sha256:
        made.references["champion"] = champion
    for name in ("start", "dream", "champion"):
        if name in made.references:
            made.evaluations[name] = held_out(recipe, made, name)
    evaluations = made.evaluations
    made.gate = judge_candidate(
        candidate,
        evaluations["dream"],
        start,
        evaluations["start"],
        recipe.gate,
        made.references.get("champion"),
        evaluations.get("champion"),
    )
    gain = made.gate["gain"]
    log("gate", {"gain": gain["mean"], "gain_low": gain["low"], "passed": float(made.gate["passed"])})
    made.versions["dream"] = record_judgement(candidate, made.gate)
    if not made.gate["calibrated"]:
        alarm(evaluations["dream"])


def offer(recipe: Recipe, made: Lineage) -> None:
    """Promote a candidate that nothing and nobody has to be asked about; else say what it waits for."""
    say = running().display.say
    if reasons := objections(made.gate):
        say(f"not promoted: {'; '.join(reasons)}")
    elif recipe.gate.needs_approval:
        if is_open(made.references["dream"], made.gate["report"]):
            say(f"waits for approval: dreamgym promote {running().cycle_id}")
    else:
        try:
            promote(made.references["dream"], made.gate["report"], running().cycle_id)
            made.promoted = True
        except (GateRefused, Overtaken) as refused:
            say(f"not promoted: {refused}")


def held_out(recipe: Recipe, made: Lineage, name: str) -> dict[str, Any]:
    """A policy of this cycle on the test tasks, for real."""
    num_tasks = recipe.environment.num_test_tasks
    return evaluated(recipe, made, f"evaluate {name}", made.references[name], "test", num_tasks)


def evaluated(
    recipe: Recipe, made: Lineage, name: str, policy: Reference, split: str, num_tasks: int, round: int = 0
) -> dict[str, Any]:
    """Success of a policy for real and in the dream, logged under a name.

    The experience model retrieves real experience only, so that every evaluation of a cycle asks the same one.
    """
    model, experience = made.references["experience_model"], made.references["experience"]
    measured = recipe.evaluation
    evaluation = evaluate(name, policy, model, experience, recipe.play, measured, split, num_tasks, round)
    log(name, evaluation, round)
    show_rollouts(name, evaluation["samples"], round)
    return evaluation


def log(stage: str, result: dict[str, Any], step: int = 0) -> None:
    """Log what a task measured in the stage's MLflow run: here, so that a result that was stored counts as well."""
    running().tracker.stage(stage).log_metrics(numbers_in(result), step)


def show_rollouts(stage: str, episodes: Reference, step: int = 0) -> None:
    """Two episodes of a stage as traces in MLflow; of an evaluation, the same task for real and in the dream."""

    def two() -> list[Trajectory]:
        played = get_trajectories(episodes)
        return [played[0], played[len(played) // 2]]

    running().tracker.stage(stage).log_rollouts(two, step)


def numbers_in(result: dict[str, Any]) -> dict[str, int | float]:
    """What can be logged or drawn of a task's result."""
    return {name: value for name, value in result.items() if isinstance(value, int | float)}


def fine_tune_for_real(recipe: Recipe, made: Lineage) -> None:
    """Sim-to-real: the same GRPO, a few rounds in the real environment, from the promoted policy."""
    grpo = recipe.grpo.model_copy(update={"learning_rate": recipe.real.learning_rate})
    made.references["sim_to_real"], made.real_interactions = train_for_real(
        recipe, grpo, made, made.references["dream"], recipe.real.num_rounds
    )
    made.evaluations["sim_to_real"] = held_out(recipe, made, "sim_to_real")
    made.versions["sim_to_real"] = register_fine_tuned(
        made.references["sim_to_real"], made.references["dream"], made.versions["dream"]
    )


def train_for_real(
    recipe: Recipe, grpo: GrpoRecipe, made: Lineage, policy: Reference, num_rounds: int
) -> tuple[Reference, int]:
    """Rounds of GRPO in the real environment; the policy, and the environment steps they took."""
    first, pool, num_steps = policy, made.references["pool"], 0
    for round in range(num_rounds):
        groups = play_real_groups(
            pool, made.entropies, policy, recipe.play, recipe.curriculum, recipe.grpo, "real rollouts", round
        )
        show_rollouts("real training", groups, round)
        num_steps += int(groups.notes["num_transitions"])
        trained = train_policy(policy, first, groups, grpo, recipe.training, "real", round)
        policy = trained["policy"]
        made.entropies |= trained["entropies"]
        log("real training", trained["metrics"], round)
    return policy, num_steps


@flow(name="real-only", validate_parameters=False)
def real_only(recipe: Recipe, references: dict[str, Any]) -> dict[str, Any]:
    """The baseline of sim-to-real: GRPO in the real environment alone, from the starting policy, with ten times the rounds."""
    made, recipe = Lineage(references=references), pinned(recipe)
    made.references["real_only"], num_steps = train_for_real(
        recipe, recipe.grpo, made, references["start"], 10 * recipe.real.num_rounds
    )
    return {**held_out(recipe, made, "real_only"), "real_interactions": num_steps}
