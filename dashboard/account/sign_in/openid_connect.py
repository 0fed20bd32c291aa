"""Sends a nonce with each request to an OpenID Connect provider, which ``ProviderAdapter`` compares with its answer."""

from __future__ import annotations

import secrets
from typing import Any

from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.http import HttpRequest, HttpResponse

from .adapters import NONCE


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    @classmethod
    def get_package(cls) -> str:
        """Return where the library finds the addresses of the provider."""
        return str(OpenIDConnectProvider.get_package())

    def redirect(self, request: HttpRequest, process: str, *where: Any, **more: Any) -> HttpResponse:
        """Lead to the provider. The nonce is kept with the state of this request, in the session."""
        nonce = secrets.token_urlsafe()
        sent = (more.pop("auth_params", None) or self.get_auth_params()) | {NONCE: nonce}
        answer: HttpResponse = super().redirect(request, process, *where, auth_params=sent, **{NONCE: nonce}, **more)
        return answer
