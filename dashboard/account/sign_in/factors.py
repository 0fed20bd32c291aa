"""Keeps the secrets of second factors encrypted in the database, and draws their codes."""

from __future__ import annotations

import qrcode
from allauth.mfa.adapter import DefaultMFAAdapter
from qrcode.image.svg import SvgPathFillImage

from machines.conf.encryption.ciphers import decrypt, demand_readable, encrypt
from machines.conf.encryption.rotation import FACTORS


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    def build_totp_svg(self, url: str) -> str:
        """Draw the code on white: on a dark page an app does not read it otherwise."""
        return str(qrcode.make(url, image_factory=SvgPathFillImage).to_string(encoding="unicode"))

    def encrypt(self, text: str) -> str:
        return encrypt(text, FACTORS)

    def decrypt(self, encrypted_text: str) -> str:
        """Decrypt a secret. Raise SecretUnreadable where its key is gone: nobody gets in without the second factor."""
        secret = decrypt(encrypted_text, FACTORS)
        demand_readable("the second factor", secret)
        return secret
