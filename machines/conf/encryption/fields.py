"""Fields of models that are encrypted in the database and in clear in Python."""

import json
from typing import Any

from django.db import models

from .ciphers import Unreadable, decrypt, encrypt


class EncryptedTextField(models.TextField):
    """A text. An empty one is stored as it is. No query finds a value by its text. ``purpose``: names the key, so it
    stays what it is when the column is renamed."""

    EMPTY: tuple[str, ...] = ("",)
    """What is stored as it is: it tells nothing."""

    def __init__(self, *args: Any, purpose: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.purpose = purpose

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, kwargs | {"purpose": self.purpose}

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        return None if value is None else decrypt(value, self.purpose)

    def get_prep_value(self, value: Any) -> str | None:
        if isinstance(value, Unreadable):
            return value.stored
        text = None if value is None else self._write(value)
        return text if text is None or text in self.EMPTY else encrypt(text, self.purpose)

    def _write(self, value: Any) -> str:
        return str(value)


class EncryptedDocumentField(EncryptedTextField):
    """JSON; Unreadable where no key decrypts it."""

    EMPTY = ("", "{}")

    def from_db_value(self, value: str | None, expression: object, connection: object) -> Any:
        text = super().from_db_value(value, expression, connection)
        return text if text is None or isinstance(text, Unreadable) else json.loads(text)

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) and not isinstance(value, Unreadable) else value

    def _write(self, value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))
