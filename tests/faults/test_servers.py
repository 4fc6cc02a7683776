"""Faults of the server stack in small numbers; `make faults` injects many."""

import pytest

from tests.faults.run import check_few

ON_SERVERS = ("kills", "outages", "cycles in a row")


@pytest.mark.integration
@pytest.mark.series
@pytest.mark.parametrize("name", ON_SERVERS)
def test_what_is_promised_holds(name):
    check_few(name)
