"""A codec for fields that definitions mark as encrypted, for teams without a key service.

Its keys are derived from ``SECRET_KEY``, one for each field; those of ``SECRET_KEY_FALLBACKS`` still read. AES-SIV
authenticates the name of the field, so a ciphertext is not read as that of another one.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.encoding import force_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

SALT = b"signalbox.fields"
RANDOM, DETERMINISTIC = b"r", b"d"
NONCE = 16  # bytes


class SecretKeyCodec:
    """Encrypts under ``SECRET_KEY``. Each ciphertext begins with its form, and a random one with its nonce."""

    def encrypt(self, value: bytes, field: str) -> bytes:
        nonce = os.urandom(NONCE)
        return RANDOM + nonce + _derive(settings.SECRET_KEY, field).encrypt(value, [field.encode(), nonce])

    def encrypt_deterministic(self, value: bytes, field: str) -> bytes:
        return DETERMINISTIC + _derive(settings.SECRET_KEY, field).encrypt(value, [field.encode()])

    def decrypt(self, value: bytes, field: str) -> bytes:
        """Decrypt under whichever key fits. Raises KeyGone."""
        from cryptography.exceptions import InvalidTag

        form, nonce = value[:1], value[1 : 1 + NONCE]
        sealed = value[1 + NONCE :] if form == RANDOM else value[1:]
        about = [field.encode(), nonce] if form == RANDOM else [field.encode()]
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
            try:
                return _derive(key, field).decrypt(sealed, about)
            except InvalidTag:
                continue
        raise KeyGone


class KeyGone(Exception):
    """Neither SECRET_KEY nor one of SECRET_KEY_FALLBACKS decrypts a value."""


def _derive(key: str | bytes, field: str) -> AESSIV:
    return _derive_cipher(force_bytes(key), field)


@lru_cache(maxsize=512)
def _derive_cipher(key: bytes, field: str) -> AESSIV:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # costs a process its start
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return AESSIV(HKDF(algorithm=SHA256(), length=64, salt=SALT, info=field.encode()).derive(key))
