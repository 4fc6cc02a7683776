"""ALFWorld's expert when it holds the wrong object."""

import pytest

from infra.environments.alfworld.expert import next_action

ASKED = {"object_target": "mug", "parent_target": "drawer"}


@pytest.mark.parametrize(
    ("planned", "held", "accepted", "then"),
    [
        ("open drawer 1", "pen 1", ["open drawer 1"], "open drawer 1"),
        ("look", "", ["go to drawer 1"], "look"),
        ("look", "mug 2", ["go to drawer 1"], "look"),
        (
            "look",
            "pen 1",
            ["go to desk 1", "go to drawer 1", "go to drawer 2", "move pen 1 to bed 1"],
            "go to drawer 1",
        ),
        ("look", "pen 1", ["go to drawer 1", "open drawer 2"], "open drawer 2"),
        ("look", "pen 1", ["close drawer 2", "go to drawer 1", "move pen 1 to drawer 2"], "move pen 1 to drawer 2"),
        ("look", "pen 1", ["go to bed 1", "move pen 1 to desk 1"], "move pen 1 to desk 1"),
        ("look", "pen 1", ["go to bed 1"], "look"),
    ],
)
def test_a_wrong_thing_is_carried_on_and_put_down(planned, held, accepted, then):
    assert next_action(planned, accepted, held, ASKED) == then
