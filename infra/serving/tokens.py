"""Tokens that clients of a server send."""

import hmac

from starlette.requests import HTTPConnection


def bearer_of(connection: HTTPConnection) -> str:
    """Return the bearer token of a request or a WebSocket; empty if there is none."""
    return connection.headers.get("authorization", "").removeprefix("Bearer ")


def is_let_in(given: str, token: str) -> bool:
    """Return whether a client's token is the server's, or none is required. Its time says nothing about the token."""
    return not token or hmac.compare_digest(given.encode(), token.encode())
