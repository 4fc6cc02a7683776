import pytest

from schemas.records import Reference
from tasks.learning.fit_experience_model import cut_off

LENGTHS: dict[str, float | int | str] = {
    "prediction_tokens_p99": 100,
    "prediction_tokens_p999": 300,
    "prediction_tokens_longest": 374,
}


@pytest.mark.parametrize(
    ("max_new_tokens", "share"),
    [(99, "over 1%"), (100, "over 0.1%"), (299, "over 0.1%"), (300, "under 0.1%"), (373, "under 0.1%")],
)
def test_how_much_is_longer_than_may_be_written_is_said(max_new_tokens, share):
    warning = cut_off(Reference("", "", "model", LENGTHS), max_new_tokens)
    assert f"max_new_tokens = {max_new_tokens} cuts off {share} of" in warning
    assert "374 tokens" in warning


def test_where_all_fits_nothing_is_said():
    assert not cut_off(Reference("", "", "model", LENGTHS), 374)


def test_of_a_model_at_an_endpoint_nothing_is_known():
    assert not cut_off(Reference("", "", "endpoint"), 16)
