"""The faults in small numbers; `make faults` injects many."""

import pytest

from tests.faults.run import FAULTS
from tests.integration.stack_home import missing_servers

ON_SERVERS = ("kills", "outages", "cycles in a row")
NEEDS_SERVERS = pytest.mark.skipif(bool(missing_servers()), reason=missing_servers())


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=NEEDS_SERVERS if one in ON_SERVERS else ()) for one in FAULTS]
)
def test_what_is_promised_holds(name):
    check, few, _ = FAULTS[name]
    outcome = check(few)
    assert outcome.broken == []
    assert outcome.num_tries >= few
