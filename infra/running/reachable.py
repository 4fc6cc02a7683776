"""Quick checks for servers and their errors: the servers' own clients would retry for minutes."""

from urllib.parse import urlsplit

import httpx

from schemas.errors import StorageError

_TIMEOUT_S = 2.0


def require_server(what: str, url: str, health: str) -> None:
    """Raise unless a server is healthy; addresses other than http and https are not checked.

    Args:
        what: Name of the server, for the message.
        url: Address of the server, which may contain a password.
        health: Path of its health check, which must need no authentication.

    Raises:
        StorageError: the server does not answer within two seconds.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return
    shown = f"{parts.scheme}://{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    try:
        httpx.get(f"{shown}{health}", timeout=_TIMEOUT_S).raise_for_status()
    except httpx.HTTPError as error:
        raise StorageError(
            f"{what} at {shown} does not answer ({type(error).__name__}): is it running? `dreamgym up` starts a stack of "
            "this home"
        ) from error


def prefect_is_away(error: BaseException) -> bool:
    """Return True if an error of Prefect's client means an unavailable server rather than a wrong request."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError) or str(error).startswith("Failed to reach API")
