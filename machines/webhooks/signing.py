"""Secrets and signatures of the Standard Webhooks specification (version 1, symmetric)."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
BYTES = 32


def new_secret() -> str:
    """Make 256 random bits, as receivers' libraries take them."""
    return PREFIX + base64.b64encode(secrets.token_bytes(BYTES)).decode("ascii")


def is_secret(text: object) -> bool:
    """Tell whether a text is a secret of at least 192 bits, as the specification asks for."""
    try:
        return isinstance(text, str) and len(base64.b64decode(text.removeprefix(PREFIX), validate=True)) >= 24
    except ValueError:
        return False


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """Sign a message: ``v1,`` and the base64 of HMAC-SHA256 over ``id.timestamp.body``."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")


def headers(held: Iterable[str], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return one signature for each secret that is valid: a receiver that knows either takes it."""
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, id, timestamp, body) for secret in held),
    }
