"""The faults in small numbers; `make faults` injects many."""

import pytest

from tests.faults.run import FAULTS


@pytest.mark.integration
@pytest.mark.parametrize("name", FAULTS)
def test_what_is_promised_holds(name):
    check, few, _ = FAULTS[name]
    outcome = check(few)
    assert outcome.broken == []
    assert outcome.num_tries >= few
