import pytest

from schemas.records import Reference
from tasks.fit_experience_model import cut_off


@pytest.mark.parametrize(("max_new_tokens", "is_too_few"), [(256, True), (373, True), (374, False), (512, False)])
def test_what_is_longer_than_may_be_written_is_named(max_new_tokens, is_too_few):
    warning = cut_off(Reference("", "", "model", {"longest_prediction": 374}), max_new_tokens)
    assert (f"max_new_tokens = {max_new_tokens}" in warning and "374 tokens" in warning) == is_too_few
    assert bool(warning) == is_too_few


def test_of_a_model_at_an_endpoint_nothing_is_known():
    assert not cut_off(Reference("", "", "endpoint"), 16)
