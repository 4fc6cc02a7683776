"""Checksummed bytes: content preceded by its own digest, so that a flipped bit is noticed."""

import hashlib

from schemas.errors import IntegrityError


def checksummed(content: bytes) -> bytes:
    """Return the content with its sha256 in front."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def verified_content(stored: bytes, name: str) -> bytes:
    """Return the content of checksummed bytes.

    Args:
        stored: Bytes from `checksummed`.
        name: Name of the content for the error message.

    Raises:
        IntegrityError: the content does not match its digest.
    """
    seal, _, content = stored.partition(b"\n")
    if seal != hashlib.sha256(content).hexdigest().encode():
        raise IntegrityError(f"{name} is corrupt: it does not match its digest")
    return content
