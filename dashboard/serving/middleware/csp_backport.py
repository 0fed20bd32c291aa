"""The part of ``django.utils.csp`` (Django 6) that our pages use, for Django 5.2."""

import secrets
from collections.abc import Mapping
from typing import Any

from django.utils.functional import SimpleLazyObject, empty


class CSP:
    NONE = "'none'"
    SELF = "'self'"
    NONCE = "<CSP_NONCE_SENTINEL>"


class LazyNonce(SimpleLazyObject):
    """A nonce that is made when it is first written, and true from then on."""

    def __init__(self) -> None:
        super().__init__(lambda: secrets.token_urlsafe(16))

    def __bool__(self) -> bool:
        return self._wrapped is not empty


def build_policy(config: Mapping[str, Any], nonce: object) -> str:
    """Return the text of the header. ``config``: directive -> list of sources, or whether it is there at all."""
    written = [f"'nonce-{nonce}'"] if nonce else []
    policy = []
    for directive, sources in config.items():
        if sources not in (None, False):
            words = [] if sources is True else sources
            words = [word for source in words for word in (written if source == CSP.NONCE else [source])]
            policy.append(" ".join([directive, *words]))
    return "; ".join(policy)
