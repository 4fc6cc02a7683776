"""Settings: an empty home is the default one, and a setting that does not exist is named."""

import pytest

from infra.settings import Settings, settings
from schemas.errors import InputError


def test_a_home_that_is_set_to_nothing_is_the_usual_one(monkeypatch):
    monkeypatch.delenv("DREAMGYM_HOME", raising=False)
    usual = Settings().home
    monkeypatch.setenv("DREAMGYM_HOME", "")
    assert Settings().home == usual


def test_a_setting_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv("DREAMGYM_HOMES", "elsewhere")
    settings.cache_clear()
    with pytest.raises(InputError, match="unknown setting DREAMGYM_HOMES: known are DREAMGYM_"):
        settings()


def test_a_home_whose_databases_would_be_elsewhere_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("DREAMGYM_HOME", str(tmp_path / "what?"))
    settings.cache_clear()
    with pytest.raises(InputError, match="has a question mark in its path"):
        settings()
