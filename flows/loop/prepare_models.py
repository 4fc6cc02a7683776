"""Preparation: from logs to the starting policy and the experience model."""

from flows.loop.early_experience import cloned, gain_early_experience
from flows.loop.judging import taught
from flows.loop.lineage import Lineage, log
from flows.loop.on_logs import logs_to_learn_from, measure_model_on_logs
from infra.context import run_context
from infra.orchestration.announcements import TRANSITIONS_COMMITTED, announce
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.backbones.backbone_from_logs import backbone_from_logs
from tasks.backbones.fetch_backbone import fetch_backbone
from tasks.backbones.find_backbone import folder_digest
from tasks.data.annotate import annotate
from tasks.data.ingest import ingest
from tasks.data.recall import recall
from tasks.judging.measure_fidelity import measure_fidelity
from tasks.judging.measure_memorisation import measure_memorisation
from tasks.judging.promote import require_stored
from tasks.learning.fit_experience_model import cut_off, fit_experience_model
from tasks.learning.learn_preferences import learn_preferences
from tasks.logs.sources.files import log_files
from tasks.planning.contract import require_contract
from tasks.playing.play_policy import play_policy
from tasks.running.artifacts import get_format

_SEED_OF_LOGS = 7_000_003
"""Seed offset of logged episodes, so that on-policy episodes of the same model differ from them."""


def prepare_models(recipe: Recipe, made: Lineage, *, only_ingest: bool) -> None:
    """Ingest and annotate logs, build the starting policy, play on-policy episodes, and fit the experience model."""
    ingest_logs(recipe, made)
    if only_ingest:
        announce(TRANSITIONS_COMMITTED, made.artifacts.logs.sha256, committed(made.artifacts.logs))
        return
    prepare_start(recipe, made)
    prepare_experience_model(recipe, made)


def ingest_logs(recipe: Recipe, made: Lineage) -> None:
    """Check and store the logged trajectories."""
    asked, played = recipe.ingest, None
    if asked.played_by == "base":
        base = named_backbone(recipe)
        num_episodes = asked.episodes_per_task * recipe.environment.num_train_tasks
        play = recipe.real_play.model_copy(update={"seed": recipe.seed + _SEED_OF_LOGS})
        played = play_policy(base, play, num_episodes, (recipe.rl.temperature,), 0.0)
    logs = ingest(recipe.environment, asked, recipe.retrieval, recipe.seed, log_files(asked.path), played)
    made.artifacts.logs = logs
    log("ingest", logs.notes)


def prepare_start(recipe: Recipe, made: Lineage) -> None:
    """Annotate the logs and build the starting policy; until then, the logs are all experience."""
    artifacts, logs = made.artifacts, logs_to_learn_from(recipe, made)
    named = None if recipe.backbone.scratch else named_backbone(recipe)  # before a teacher is asked
    artifacts.experience = explained(recipe, made, logs)
    artifacts.backbone = backbone_of(recipe, named, artifacts.experience[0])
    artifacts.start = starting_policy(recipe, made)


def prepare_experience_model(recipe: Recipe, made: Lineage) -> None:
    """Fit the experience model to the logs and to on-policy episodes of the starting policy, and measure it."""
    artifacts = made.artifacts
    if recipe.environment.can_be_played:
        artifacts.experience = [*artifacts.experience, on_policy_episodes(recipe, made)]
    artifacts.experience_model = experience_model(recipe, made, artifacts.backbone, artifacts.experience)
    measure_one_step(recipe, made)


def on_policy_episodes(recipe: Recipe, made: Lineage) -> Reference:
    """Return real episodes of the starting policy, with reasoning."""
    asked, start, demonstrations = recipe.experience, made.artifacts.start, made.artifacts.experience
    with run_context().display.one_line("on-policy episodes") as conclude:
        played = play_policy(
            start,
            recipe.real_play,
            asked.num_on_policy_episodes,
            asked.on_policy_temperatures,
            recipe.rl.entity_renaming,
        )
        conclude(f"{asked.num_on_policy_episodes:,} episodes")
    if recipe.start.from_ == "demonstrations":
        made.memorisation = measure_memorisation(demonstrations, played, recipe.start, asked.on_policy_temperatures)
        log("memorisation", made.memorisation)
    return annotate(played, recipe.annotate, recipe.environment, recipe.retrieval, recipe.seed, start.sha256)


def measure_one_step(recipe: Recipe, made: Lineage) -> None:
    """Measure the experience model on real transitions that it was not fitted to."""
    artifacts = made.artifacts
    if not recipe.environment.can_be_played:
        measure_model_on_logs(recipe, made, artifacts.valid_logs, "experience model fidelity")
        return
    with run_context().display.one_line("one-step fidelity") as conclude:
        made.fidelity = measure_fidelity(
            artifacts.experience_model, artifacts.start, artifacts.experience, recipe.play, recipe.rl.temperature
        )
        conclude(f"{made.fidelity['state_exact']:.1%} of states predicted exactly")
    log("experience model fidelity", made.fidelity)


def explained(recipe: Recipe, made: Lineage, logs: Reference) -> list[Reference]:
    """Return the logs with reasoning, plus the real episodes of earlier runs in the store if the recipe reads them."""
    annotated = annotate(logs, recipe.annotate, recipe.environment, recipe.retrieval, recipe.seed)
    tag = made.left_behind.table_tag
    if not (recipe.ingest.from_store and tag):
        return [annotated]
    recalled = recall(tag, logs, recipe.environment)
    return [
        annotated,
        annotate(recalled, recipe.annotate, recipe.environment, recipe.retrieval, recipe.seed, store=False),
    ]


def named_backbone(recipe: Recipe) -> Reference:
    """Return the model that the recipe names, before anything is trained on it.

    Raises:
        InputError: its tokenizer does not give back what policy and experience model are taught to write.
    """
    backbone = fetch_backbone(recipe.backbone, folder_digest(recipe.backbone))
    require_contract(get_format(backbone), recipe)
    return backbone


def backbone_of(recipe: Recipe, named: Reference | None, logs: Reference) -> Reference:
    """Return the backbone of policy and experience model: the one that is named, or one trained on the logs."""
    asked, shown = recipe.backbone, recipe.experience
    backbone = named or backbone_from_logs(
        logs, asked.scratch, recipe.retrieval, shown.history_length, shown.with_reasoning, recipe.seed
    )
    return fitted(recipe, backbone, [logs]) if asked.learn_transitions else backbone


def starting_policy(recipe: Recipe, made: Lineage) -> Reference:
    """Return the policy that training begins with, as `start.from` says."""
    left, artifacts, early = made.left_behind, made.artifacts, recipe.start.early_experience
    if stored := {"champion": left.champion, "run": left.policy}.get(recipe.start.from_):
        require_stored(stored)
        return stored
    if recipe.start.run:
        raise InputError("only `dreamgym run` starts from the policy of an earlier run: leave out start.run here")
    if recipe.start.from_ == "champion":
        run_context().display.say("there is no champion yet: the starting policy is cloned from demonstrations")
    if recipe.start.from_ == "base":
        return artifacts.backbone
    if early.alternatives:
        dreamt = early.executed_in == "dream"
        model = newly_fitted(recipe, artifacts.backbone, artifacts.experience) if dreamt else None
        gain_early_experience(recipe, made, model)
    policy = cloned(recipe, made, artifacts.experience)
    preferences = recipe.start.preferences
    if preferences.pairs_per_task == 0:
        return policy
    updates, training = preferences.updates, recipe.training
    return learn_preferences(policy, artifacts.experience, recipe.start, recipe.policy, updates, training, recipe.seed)


def experience_model(recipe: Recipe, made: Lineage, backbone: Reference, experience: list[Reference]) -> Reference:
    """Return an experience model fitted on all experience, or the last run's, trained further on what is new."""
    left, asked = made.left_behind, recipe.experience
    if asked.start_from == "last" and left.experience_model and not asked.endpoint_model:
        if left.experience_model.kind == backbone.kind and left.backbone and left.backbone.sha256 == backbone.sha256:
            return newly_fitted(recipe, left.experience_model, experience, left.experience)
        run_context().display.say(
            "the last run's experience model has another backbone: this one is fitted from scratch"
        )
    return newly_fitted(recipe, backbone, experience)


def newly_fitted(
    recipe: Recipe, model: Reference, experience: list[Reference], learnt: list[Reference] | None = None
) -> Reference:
    """Return an experience model fitted to some experience, that has learnt to judge if the recipe says so."""
    predicting = fitted(recipe, model, experience, learnt)
    if warning := cut_off(predicting, recipe.experience.max_new_tokens):
        run_context().display.say(warning)
    return taught(recipe, predicting, experience)


def fitted(
    recipe: Recipe, model: Reference, experience: list[Reference], learnt: list[Reference] | None = None
) -> Reference:
    """Fit a model to the transitions of some experience; a share of those learnt before is replayed."""
    asked, training = recipe.experience.as_fitted, recipe.training
    return fit_experience_model(
        model, experience, learnt or [], asked, training, recipe.retrieval, recipe.environment, recipe.seed
    )


def committed(logs: Reference) -> dict[str, str | int]:
    """Return the facts that identify a commit of transitions."""
    count = int(logs.notes["num_transitions"])
    return {"table": "transitions", "version": str(logs.notes["table_tag"]), "count": count, "digest": logs.sha256}
