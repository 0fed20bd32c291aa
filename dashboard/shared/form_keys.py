"""Idempotency keys of forms: pressing a button twice, or sending a form twice, counts once."""

from __future__ import annotations

import hashlib
import secrets

from django.http import QueryDict


def make_key() -> str:
    """Return an idempotency key for one rendered form."""
    return secrets.token_urlsafe(12)


def key_of_content(key: str, sent: QueryDict) -> str | None:
    """Return the key of this form with this content, or None where the form has no key.

    The same form sent twice counts once. A form sent again with other content (after the browser's Back button) is
    another call, and the expected revision decides.
    """
    if not key:
        return None
    content = sorted((name, text) for name, texts in sent.lists() for text in texts if name != "csrfmiddlewaretoken")
    return f"{key}:{hashlib.sha256(repr(content).encode()).hexdigest()[:16]}"
