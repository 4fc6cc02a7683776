"""Errors that mean that a server is away."""

import httpx
import pytest

from infra.running.reachable import prefect_is_away

ASKED = httpx.Request("GET", "http://127.0.0.1:9/api")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx.ConnectError("refused"), True),
        (httpx.ReadTimeout("slow"), True),
        (RuntimeError("Failed to reach API at http://127.0.0.1:9/api/"), True),
        (httpx.HTTPStatusError("unwell", request=ASKED, response=httpx.Response(503)), True),
        (httpx.HTTPStatusError("asked wrongly", request=ASKED, response=httpx.Response(422)), False),
        (RuntimeError("something else"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_an_outage_is_told_from_a_mistake(error, expected):
    assert prefect_is_away(error) is expected
