"""Sim-to-real: continue training a policy in the real environment; and its baseline, which never dreamt."""

from typing import Any

from prefect import flow

from flows.loop.consolidation import Consolidation
from flows.loop.evaluate_and_judge import evaluate_and_judge_fine_tuned, held_out, promote_if_allowed
from flows.loop.lineage import Lineage, evaluated, log, show_rollouts
from flows.loop.prepare_models import ingest_logs, prepare_start
from flows.loop.rounds import demonstrations, earlier_rounds, is_validated_after, observe, real_round, rollout_metrics
from infra.context import run_context
from models.methods.importance import corrected_for
from schemas.errors import GateRefused, IntegrityError
from schemas.recipes.learning import RlRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from schemas.runs import Artifacts, Evaluation
from tasks.data.pool_tasks import pool_tasks
from tasks.judging.promote import is_in_force
from tasks.learning.best_policy import BestPolicy
from tasks.learning.round_policies import RoundPolicies
from tasks.learning.train_policy import train_policy
from tasks.running.pins import with_encoder_pinned

_ROUNDS_OF_THE_BASELINE = 10
"""Rounds of the baseline per round of sim-to-real."""


def fine_tune_for_real(recipe: Recipe, made: Lineage) -> None:
    """Train the dream-trained policy for a few rounds in the real environment, judge it, and offer it."""
    first = made.artifacts.dream
    policy, num_steps = train_for_real(recipe, recipe.real_rl, made, first, recipe.real.num_rounds)
    made.artifacts.sim_to_real, made.real_interactions["sim_to_real"] = policy, num_steps
    gate = evaluate_and_judge_fine_tuned(recipe, made)
    if made.promoted and policy.sha256 != first.sha256:
        promote_if_allowed(recipe, made, "sim_to_real", gate)


@flow(name="sim-to-real", validate_parameters=False)
def sim_to_real(recipe: Recipe, references: dict[str, Any], promoted: str) -> Lineage:
    """Continue training exactly the promoted policy of a finished run; nothing before it is trained again.

    Args:
        recipe: Recipe of the run.
        references: Lineage of the run.
        promoted: Digest of the policy.

    Raises:
        IntegrityError: the run's policy is a different one.
        GateRefused: the policy is not in force: it was never promoted, or was rolled back.
    """
    policy = references["dream"]
    if policy.sha256 != promoted:
        raise IntegrityError(
            f"policy {promoted[:12]} was promoted, and the run's is {policy.sha256[:12]}: nothing is trained"
        )
    if not is_in_force(policy):
        raise GateRefused(f"policy {promoted[:12]} is not in force: `dreamgym history` shows what was decided")
    recipe, made = with_encoder_pinned(recipe), Lineage.of_finished(references)
    made.promoted = "dream"
    fine_tune_for_real(recipe, made)
    return made


@flow(name="real-only", validate_parameters=False)
def real_only(recipe: Recipe, references: dict[str, Any]) -> dict[str, Any]:
    """Train and evaluate the baseline of sim-to-real.

    GRPO in the real environment alone, from the starting policy, with ten times the rounds.
    """
    made, recipe = Lineage(Artifacts(**references)), with_encoder_pinned(recipe)
    num_rounds = _ROUNDS_OF_THE_BASELINE * recipe.real.num_rounds
    policy, num_steps = train_for_real(recipe, recipe.rl, made, made.artifacts.start, num_rounds)
    return {**held_out(recipe, made, "real_only", policy, 0), "real_interactions": num_steps}


@flow(name="real-training", validate_parameters=False)
def real_training(recipe: Recipe, num_rounds: int) -> dict[str, Any]:
    """Train the starting policy of a recipe in the real environment, without an experience model, to compare methods.

    Returns:
        Success by valid task before the first and after the last round, real episodes and steps.
    """
    recipe, made = with_encoder_pinned(recipe), Lineage()
    ingest_logs(recipe, made)
    prepare_start(recipe, made)
    made.artifacts.pool = pool_tasks(made.artifacts.experience)
    training = RealTraining(recipe, recipe.rl, made, made.artifacts.start)
    before = on_valid(recipe, made, training.policy, 0)
    for round in range(num_rounds):
        with run_context().display.round(round + 1, num_rounds, "real round") as conclude:
            conclude(success_of_round(training.run_round(round)))
    after = on_valid(recipe, made, training.policy, num_rounds)
    return {
        "num_episodes": training.num_episodes,
        "num_steps": training.num_steps,
        "before": list(before["successes"].values()),
        "after": list(after["successes"].values()),
    }


class RealTraining:
    """Training of a policy in the real environment, round by round."""

    def __init__(self, recipe: Recipe, rl: RlRecipe, made: Lineage, first: Reference) -> None:
        """Begin with a policy.

        Args:
            recipe: Recipe of the run.
            rl: Reinforcement learning settings.
            made: Lineage of the run, with the tasks to draw from.
            first: Policy to train, and reference of its losses.
        """
        self._recipe, self._rl, self._made = recipe, corrected_for(rl, recipe.engine), made
        self.policy = self._reference = first
        self.num_episodes = self.num_steps = 0
        self.policies, self._rounds = RoundPolicies(), list[list[Reference]]()
        self._consolidation = Consolidation(recipe, made, "sim_to_real", recipe.real)

    def run_round(self, round: int) -> dict[str, Any]:
        """Play and train for one round; return its metrics."""
        recipe, made = self._recipe, self._made
        groups = real_round(recipe, made.artifacts.pool, made.curriculum, self.policy, round)
        show_rollouts("real training", groups[0], round)
        self.num_episodes += sum(int(part.notes["num_episodes"]) for part in groups)
        self.num_steps += sum(int(part.notes["num_transitions"]) for part in groups)
        earlier = earlier_rounds(self._rl, self._rounds)
        trained = train_policy(
            self.policy,
            self._reference,
            groups,
            self._rl,
            recipe.training,
            recipe.environment,
            "real",
            round,
            earlier,
            demonstrations=demonstrations(recipe, made),
        )
        self.policies.add(trained["policy"], made_from=self.policy)
        self._rounds.append(groups)
        self.policy, self._reference = self._consolidation.after(round, groups, trained["policy"], self._reference)
        observe(recipe, made, groups)
        metrics = trained["metrics"] | rollout_metrics(groups)
        log("real training", metrics, round)
        return metrics


def train_for_real(
    recipe: Recipe, rl: RlRecipe, made: Lineage, first: Reference, num_rounds: int
) -> tuple[Reference, int]:
    """Train in the real environment; return the best policy on valid tasks and the total number of steps."""
    training = RealTraining(recipe, rl, made, first)
    success = success_on_valid(recipe, made, first, 0) if num_rounds else 0.0
    best = BestPolicy(first, success)
    for round in range(num_rounds):
        with run_context().display.round(round + 1, num_rounds, "real round") as conclude:
            metrics = training.run_round(round)
            if is_validated_after(round, num_rounds, recipe.dream.calibrate_every):
                success = success_on_valid(recipe, made, training.policy, round + 1)
                best.compare(training.policy, success)
                training.policies.measured(training.policy, best.policy)
            conclude(f"{success_of_round(metrics)}, real (valid) {success:.0%}")
    return best.policy, training.num_steps


def success_of_round(metrics: dict[str, Any]) -> str:
    """Return success of a round's episodes as text."""
    return f"real {metrics['real_success']:.0%}" if "real_success" in metrics else "no episode ended"


def success_on_valid(recipe: Recipe, made: Lineage, policy: Reference, round: int) -> float:
    """Return real success on valid tasks, without dreaming them."""
    return on_valid(recipe, made, policy, round)["real_success"]


def on_valid(recipe: Recipe, made: Lineage, policy: Reference, round: int) -> Evaluation:
    """Evaluate a policy on valid tasks, without dreaming them."""
    return evaluated(
        recipe.without_dreams, made, "real validation", policy, "valid", recipe.environment.num_valid_tasks, round
    )
