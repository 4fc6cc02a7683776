"""Check that an experience model could predict a real environment's answers: our format must read back unchanged."""

from collections.abc import Sequence

from models.examples.supervised import situations_of
from models.experience.experience_model import parse_prediction
from models.network.language_model import load_model
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import Trajectory
from schemas.state_text import changes_between, lines_of
from tasks.backbones.find_backbone import SHIPPED


def require_predictable(episodes: Sequence[Trajectory]) -> None:
    """Check that every step of some real episodes is the same after it is written as a prediction and parsed."""
    format = load_model(SHIPPED / "textworld-tiny").format
    for episode in episodes:
        for situation, turn in zip(situations_of(episode, ExperienceRecipe()), episode.turns, strict=True):
            written = format.prediction(turn.step, changes_between(turn.state, turn.step.state))
            read = parse_prediction(situation, format.decode(written[:-1]))
            assert read.failure is None, read.reasoning
            assert lines_of(read.state) == lines_of(turn.step.state)
            assert (read.done, read.success) == (turn.step.done, turn.step.success)
