"""Settings: what is set to nothing is not set, and what does not exist is named."""

import pytest

from infra.settings import Settings, settings
from schemas.errors import InputError


def test_a_variable_that_is_set_to_nothing_is_as_if_it_were_not_set(monkeypatch):
    for name in ("DREAMGYM_HOME", "DREAMGYM_NUM_THREADS", "DREAMGYM_S3_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    usual = Settings()
    for name in ("DREAMGYM_HOME", "DREAMGYM_NUM_THREADS", "DREAMGYM_S3_ENDPOINT"):
        monkeypatch.setenv(name, "")
    assert Settings() == usual


def test_a_setting_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv("DREAMGYM_HOMES", "elsewhere")
    settings.cache_clear()
    with pytest.raises(InputError, match="unknown setting DREAMGYM_HOMES: known are DREAMGYM_"):
        settings()
