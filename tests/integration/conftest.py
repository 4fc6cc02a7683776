"""What several integration tests stand on."""

import pytest

from tests.integration.fresh import use_home


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, on which every door opens."""
    use_home(tmp_path, monkeypatch)
    yield tmp_path
    use_home(tmp_path, monkeypatch)
