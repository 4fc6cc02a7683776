"""The experience model: a reasoning LM that plays the environment (paper, section 4.1, Eq. 4).

predict   situations -> reasoning, changed lines, outcome, parsed under constraint
Dream     an Environment that answers with predictions, for as many episodes at once as there are slots
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.experience.experience_format import history_shown
from models.experience.predictors import MemoizedPredictor, Predictor
from models.methods.judges import Judge
from models.text.policies.policy_format import is_malformed
from models.text.prompts import TransitionQuery, has_markers
from schemas.errors import InputError
from schemas.ports import AdmissibleActions, Demonstrations
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import AgentTask, Failure, Step
from schemas.state_text import apply_changes

_PREDICTION = re.compile(
    r"(?:\[think\] ?(?P<reasoning>.*?))?\[next\]\n?(?P<changes>.*?)\[outcome\] ?(?P<outcome>continue|success|failure)",
    re.DOTALL,
)


class ExperienceModel:
    """Model that predicts an environment's answers.

    Differs: it is held to its own states. An action that a dreamt state does not accept is refused without a
    prediction, and a prediction that refuses an accepted action is sampled again. A small model says rightly that a
    drawer is empty and then grants what is taken from it, and a policy in training finds these gaps at once.
    """

    def __init__(
        self,
        predictor: Predictor,
        demonstrations: Demonstrations | None,
        recipe: ExperienceRecipe,
        num_demonstrations: int = 0,
        listed: AdmissibleActions | None = None,
        judge: Judge | None = None,
    ) -> None:
        """Create a model that parses what a predictor writes.

        Args:
            predictor: Predictor that writes the predictions.
            demonstrations: Source of demonstrations; None leaves the model without grounding.
            recipe: Temperature of the predictions, number of retries, and how much of the history is shown.
            num_demonstrations: k of Eq. 4; 0 predicts without retrieval.
            listed: Reader of the actions that a state accepts; None where states do not list them.
            judge: Reviewer of the predictions; None takes them as they are.
        """
        self._predictor, self._demonstrations, self.recipe = MemoizedPredictor(predictor), demonstrations, recipe
        self._num_demonstrations = num_demonstrations
        self._listed, self._judge = listed, judge
        self.batches_requests = predictor.batches_requests
        """Whether threads can ask side by side; see `Engine`."""

    def ground(self, situations: Sequence[TransitionQuery]) -> list[TransitionQuery]:
        """Return the situations with k retrieved demonstrations each, never from their own trajectory."""
        if self._demonstrations is None or self._num_demonstrations == 0:
            return list(situations)
        found = self._demonstrations.retrieve(situations, self._num_demonstrations)
        return [replace(s, demonstrations=tuple(demos)) for s, demos in zip(situations, found, strict=True)]

    def predict(self, situations: Sequence[TransitionQuery]) -> list[Step]:
        """Predict one step per situation; an unparsable prediction is a step with a typed failure."""
        refusals = [self._refusal(situation) for situation in situations]
        asked = [situation for situation, step in zip(situations, refusals, strict=True) if step is None]
        predicted = iter(self._predicted(self.ground(asked)) if asked else [])
        return [step or next(predicted) for step in refusals]

    def _refusal(self, situation: TransitionQuery) -> Step | None:
        """Return the refusal of an action that the state does not accept; None if a prediction is needed."""
        state = situation.state
        if is_malformed(situation.action):
            return _refused(state, "no action")
        if self._listed is None or self._listed.accepts(state, situation.action) is not False:
            return None
        return _refused(self._listed.refused(state), "not listed")

    def unreviewed(self, situations: list[TransitionQuery]) -> list[Step]:
        """Predict a step per situation that has its demonstrations, as the judge is shown it."""
        steps = self._steps(situations, self.recipe.temperature)
        self._retry_wrong(situations, steps)
        return steps

    def _predicted(self, situations: list[TransitionQuery]) -> list[Step]:
        steps = self.unreviewed(situations)
        return self._judge.review(situations, steps, self.sample) if self._judge else steps

    def _retry_wrong(self, situations: list[TransitionQuery], steps: list[Step]) -> None:
        """Sample predictions again that cannot be parsed or refuse an accepted action, up to `num_retries` times."""
        wrong: Sequence[int] = range(len(steps))
        for _ in range(self.recipe.num_retries):
            wrong = [i for i in wrong if self._is_wrong(situations[i], steps[i])]
            again = self._steps([situations[i] for i in wrong], temperature=1.0)
            for i, step in zip(wrong, again, strict=True):
                steps[i] = step

    def _is_wrong(self, situation: TransitionQuery, step: Step) -> bool:
        state, listed = situation.state, self._listed
        refuses = listed and listed.accepts(state, situation.action) and step.state == listed.refused(state)
        return bool(step.failure or refuses)

    def sample(self, situations: Sequence[TransitionQuery]) -> list[Step | None]:
        """Predict a step per situation once more, at temperature 1, or review predictions at the recipe's temperature.

        The step is None where it cannot be parsed, or is known to be wrong.
        """
        is_review = any(situation.predictions for situation in situations)
        steps = self._steps(situations, self.recipe.temperature if is_review else 1.0)
        return [None if self._is_wrong(s, step) else step for s, step in zip(situations, steps, strict=True)]

    def _steps(self, situations: Sequence[TransitionQuery], temperature: float) -> list[Step]:
        """Predict a step per situation."""
        texts = self._predictor.predict(situations, temperature)
        return [parse_prediction(s, text) for s, text in zip(situations, texts, strict=True)]


def parse_prediction(situation: TransitionQuery, text: str) -> Step:
    """Parse the model's text into a step; text that is not of the agreed form gives a typed failure."""
    broken = Step(situation.state, 0.0, done=True, success=False, reasoning=text, failure=Failure.UNPARSABLE)
    match = _PREDICTION.fullmatch(text)
    if match is None or has_markers((match["reasoning"] or "") + match["changes"]):
        return broken
    try:
        state = apply_changes(situation.state, match["changes"])
    except ValueError:
        return broken
    success = match["outcome"] == "success"
    return Step(
        state,
        float(success),
        done=match["outcome"] != "continue",
        success=success,
        reasoning=(match["reasoning"] or "").strip(),
        demonstrations=situation.demonstrations,
    )


def is_well_formed(action: str) -> bool:
    """Return whether an action is a line of text without prompt markers."""
    return bool(action) and "\n" not in action and not has_markers(action)


def _refused(state: str, why: str) -> Step:
    """Return a refusal that needs no prediction."""
    return Step(state, 0.0, done=False, success=False, reasoning=f"{why}: refused.")


@dataclass(frozen=True, slots=True)
class _Episode:
    task: AgentTask
    state: str
    turns: tuple[tuple[str, str], ...] = ()
    """Earlier states and the actions taken in them."""


class Dream:
    """Environment that the experience model imagines. Slots are independent of each other, in threads too.

    Differs: an action that is not a line of text is refused without a prediction.
    """

    def __init__(self, model: ExperienceModel) -> None:
        """Create an environment without episodes."""
        self._model = model
        self._episodes: dict[int, _Episode] = {}
        self.batches_requests = model.batches_requests
        """Whether threads can step slots side by side; see `Engine`."""

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Start from each task's recorded or generated first state."""
        for slot, task in tasks.items():
            if not task.initial_state:
                raise InputError(
                    f"agent task {task.task_id} has no initial state to dream from: ingest a trajectory of it"
                )
            self._episodes[slot] = _Episode(task, task.initial_state)
        return {slot: task.initial_state for slot, task in tasks.items()}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Predict the step that each action leads to."""
        understood = {slot: action for slot, action in actions.items() if is_well_formed(action)}
        predicted = self._model.predict([self._situation(slot, action) for slot, action in understood.items()])
        steps = dict(zip(understood, predicted, strict=True))
        for slot, action in actions.items():
            episode = self._episodes[slot]
            step = steps.setdefault(slot, _refused(episode.state, "not an action"))
            turns = (*episode.turns, (episode.state, action))
            self._episodes[slot] = replace(episode, state=step.state, turns=turns)
        return {slot: steps[slot] for slot in actions}

    def _situation(self, slot: int, action: str) -> TransitionQuery:
        episode = self._episodes[slot]
        shown, number = history_shown(self._model.recipe, episode.turns), len(episode.turns) + 1
        return TransitionQuery(episode.task, episode.state, action, shown, turn=number)
