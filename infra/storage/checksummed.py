"""Sealed bytes: their own digest stands before them, so that a flipped bit does not go unseen."""

import hashlib

from schemas.errors import IntegrityError


def checksummed(content: bytes) -> bytes:
    """Content behind its sha256."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def verified_content(stored: bytes, name: str) -> bytes:
    """What was sealed.

    Raises:
        IntegrityError: it is not what was sealed; the message calls it by its name.
    """
    seal, _, content = stored.partition(b"\n")
    if seal != hashlib.sha256(content).hexdigest().encode():
        raise IntegrityError(f"{name} is corrupt: it does not match its digest")
    return content
