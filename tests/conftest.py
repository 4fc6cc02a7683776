"""Setup of every test process: interrupts are delivered, networks use one thread, and no example has a deadline.

Test processes share the cores with each other and with the servers of tests, so an example may take any time. A
test run that was started in the background inherits that interrupts are ignored, and some tests send them.
"""

import os
import signal

import pytest
from hypothesis import settings

from tests.shared_prefect import prefect_server, share_prefect, shared_prefect  # noqa: F401  (fixtures)

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.update(OMP_NUM_THREADS="1", DREAMGYM_NUM_THREADS="1")
# The same examples in every run, so that a failure names a change; `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None, max_examples=2000)
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

_LONGEST = (
    *("test_cycle.py", "test_large_recipes.py", "test_stack.py", "test_methods.py", "test_vllm.py", "test_nights.py"),
    *("test_miniwob.py", "test_interrupted.py", "test_stores.py", "test_ray.py", "test_scheduled_nights.py"),
    *("test_dream_out.py", "test_tiny_recipes.py", "test_logs_only.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process ends with one alone."""
    items.sort(key=lambda item: _LONGEST.index(item.path.name) if item.path.name in _LONGEST else len(_LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    """Let all test processes share a Prefect server; xdist calls this for each before it starts."""
    share_prefect(node.workerinput)
