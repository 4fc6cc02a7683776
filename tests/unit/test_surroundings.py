"""Variables of the surroundings: proxies do not stand between a process and the servers that it starts."""

import os

import pytest

from infra.surroundings import reach_loopback_directly

LOOPBACK = "localhost,127.0.0.1,::1"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"http_proxy": "http://p"}, LOOPBACK),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "intra.net, localhost"}, "intra.net,localhost,127.0.0.1,::1"),
        ({"all_proxy": "socks5://p", "no_proxy": "*"}, "*"),
    ],
)
def test_loopback_is_exempt_from_proxies(monkeypatch, given, expected):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    reach_loopback_directly()
    assert os.environ.get("no_proxy") == expected
    if expected != "*":
        assert os.environ.get("NO_PROXY") == expected
