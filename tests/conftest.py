"""Setup of every test process: interrupts are delivered, networks use one thread, and no example has a deadline.

Test processes share the cores with each other and with the servers of tests, so an example may take any time. A
test run that was started in the background inherits that interrupts are ignored, and some tests send them.
"""

import os
import signal

import pytest
from hypothesis import settings

from tests.shared_prefect import prefect_server, shared_prefect  # noqa: F401  (fixtures)

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.update(OMP_NUM_THREADS="1", DREAMGYM_NUM_THREADS="1")
# The same examples in every run, so that a failure names a change; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None, max_examples=2000)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

_LONGEST = "test_vllm.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the file that takes longest first, so that no process ends with it alone."""
    items.sort(key=lambda item: item.path.name != _LONGEST)
