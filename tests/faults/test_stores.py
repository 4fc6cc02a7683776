"""Faults of the stores in small numbers; `make faults` injects many."""

import pytest

from schemas.errors import InputError
from tests.faults.run import FAULTS, check_few
from tests.faults.test_servers import ON_SERVERS


@pytest.mark.integration
@pytest.mark.parametrize("name", [one for one in FAULTS if one not in ON_SERVERS])
def test_what_is_promised_holds(name):
    try:
        check_few(name)
    except InputError as error:  # an environment is not installed
        pytest.skip(str(error))
