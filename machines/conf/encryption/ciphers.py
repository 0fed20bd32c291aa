"""Encrypts texts under keys that are derived from ``SECRET_KEY``, and reads them under those of
``SECRET_KEY_FALLBACKS``, too.

Each purpose has a key of its own: a ciphertext that is copied to another column is not read there.
"""

from __future__ import annotations

import base64
import logging
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from machines.engine import SignalboxError

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

log = logging.getLogger(__name__)

MARK = "$fernet$"
"""What a ciphertext begins with. A value without it was stored by an older release, as it is."""
SALT = b"signalbox.encryption"
WORDS = "cannot be decrypted: its key is neither SECRET_KEY nor one of SECRET_KEY_FALLBACKS"


class Unreadable(str):
    """Takes the place of a value that no key decrypts: the text says so, and saving it keeps the ciphertext.
    ``stored``: that ciphertext."""

    stored: str

    def __new__(cls, stored: str) -> Unreadable:
        made = super().__new__(cls, WORDS)
        made.stored = stored
        return made


class SecretUnreadable(SignalboxError):
    """``what``: whose secret it is. Nothing was done, and nothing was lost."""

    code = "SB451"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} {WORDS}; nothing was done", what=what)


def demand_readable(what: str, *values: object) -> None:
    """Raise SecretUnreadable where one of the values could not be decrypted."""
    if any(isinstance(value, Unreadable) for value in values):
        raise SecretUnreadable(what)


def has_key() -> bool:
    """Tell whether there is a key here: a program that does not use Django has none."""
    found = sys.modules.get("django.conf")
    return found is not None and found.settings.configured


def encrypt(text: str, purpose: str) -> str:
    """Encrypt a text under the current key."""
    return MARK + _load_ciphers(purpose)[0].encrypt(text.encode("utf-8", "surrogatepass")).decode("ascii")


def decrypt(stored: str, purpose: str) -> str:
    """Return the text of a stored value; Unreadable where no key fits."""
    if not stored.startswith(MARK):
        return stored
    found = _decrypt(stored, purpose)
    if found is not None:
        return found[0]
    _report(purpose, stored)
    return Unreadable(stored)


def renew(stored: str, purpose: str) -> str | None:
    """Return a stored value as the current key encrypts it: the same where that is done already, None where no key
    fits."""
    if not stored.startswith(MARK):
        return encrypt(stored, purpose)
    found = _decrypt(stored, purpose)
    if found is None:
        return None
    text, number = found
    return stored if number == 0 else encrypt(text, purpose)


def _decrypt(stored: str, purpose: str) -> tuple[str, int] | None:
    """Return the text, and the number of the key that fits: 0 for the current one. None where none does."""
    from cryptography.fernet import InvalidToken

    for number, cipher in enumerate(_load_ciphers(purpose)):
        try:
            return cipher.decrypt(stored[len(MARK) :]).decode("utf-8", "surrogatepass"), number
        except InvalidToken:
            continue
    return None


def _load_ciphers(purpose: str) -> tuple[Fernet, ...]:
    if not has_key():
        return ()
    from django.conf import settings
    from django.utils.encoding import force_bytes

    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return tuple(_derive_cipher(force_bytes(key), purpose) for key in keys)


@lru_cache(maxsize=128)
def _derive_cipher(key: bytes, purpose: str) -> Fernet:
    from cryptography.fernet import Fernet  # costs a process its start: the first secret imports it
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(algorithm=SHA256(), length=32, salt=SALT, info=purpose.encode()).derive(key)
    return Fernet(base64.urlsafe_b64encode(derived))


@lru_cache(maxsize=1000)
def _report(purpose: str, stored: str) -> None:
    """Log once in a process that a value is unreadable."""
    log.error("a stored %s %s; see `manage.py secrets rotate`", purpose, WORDS)
