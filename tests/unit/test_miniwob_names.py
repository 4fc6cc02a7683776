"""Names on a page of MiniWoB++ that may be replaced."""

import pytest

from infra.environments.miniwob.names import names_on
from schemas.state_text import lines_of


@pytest.mark.parametrize(
    ("instruction", "page", "names"),
    [
        (
            "Select FjkZte and click Submit.",
            '- [6] radio: "rMZmwG", unchecked\n- [8] radio: "FjkZte", checked, focused\n- [11] button: "Submit"',
            ["FjkZte", "rMZmwG"],
        ),
        (
            "Select Isle of Man from the list and click Submit.",
            '- [4] combobox: "Isle of Man" of "Isle of Man" | "Chad" | "Cuba", focused\n- [5] button: "Submit"',
            ["Chad", "Cuba", "Isle of Man"],
        ),
        (
            'Click on the "Yes" button.',
            '- [4] text: "Yes or no"\n- [5] button: "No", focused\n- [6] button: "Yes"\n- [7] button: "previous"',
            ["Yes", "previous"],
        ),
        ('Enter the username "renda" and press login.', '- [7] textbox: (empty)\n- [11] button: "Login"', ["renda"]),
        ("Click on Tab #1.", '- [6] link: "Tab #1"\n- [8] link: "Tab #2"\n- [9] link: "123"', ["Tab #1", "Tab #2"]),
    ],
)
def test_names_are_those_that_a_task_and_its_choices_go_by(instruction, page, names):
    assert names_on(instruction, lines_of(page)) == names
