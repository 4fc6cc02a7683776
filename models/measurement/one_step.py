"""Steps of a dream beside the real ones, as long as both were taken from the same state."""

from collections.abc import Sequence

from schemas.records import Step, Turn


def compared_steps(dreamt: Sequence[Turn], real: Sequence[Step]) -> list[tuple[Turn, Step]]:
    """Return dreamt turns with the real steps of the same actions, up to and including the first with another state.

    From there on, dream and replay act in different states, and a difference is no error of one step. Steps without a
    prediction, or in which the real environment failed, end the comparison and are left out.

    Args:
        dreamt: Turns of a dreamt episode.
        real: Real steps that its actions lead to, from the same first state.
    """
    compared: list[tuple[Turn, Step]] = []
    for turn, step in zip(dreamt, real, strict=False):
        if turn.step.failure or step.failure:
            break
        compared.append((turn, step))
        if turn.step.state != step.state:
            break
    return compared
