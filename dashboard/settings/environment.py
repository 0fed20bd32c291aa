"""Typed readers of environment variables.

A value that does not fit stops the start with an ``ImproperlyConfigured`` that names the variable,
shows what it holds (secrets are not shown) and says what would fit. An empty value counts as not given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from machines.engine.connection.redis_url import read_url
from machines.engine.errors import BadInput

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads settings out of ``values``; ``names`` lists every one that was ever asked for, in order."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.names: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        self._note(name)
        value = self._values.get(name, "").strip()
        if "\0" in value:
            raise ImproperlyConfigured(f"{name} holds a NUL byte")
        return value or default

    def secret(self, name: str, default: str = "") -> str:
        """The value of ``NAME``, or the content of the file that ``NAME_FILE`` names; never both."""
        value, path = self.text(name), self.text(f"{name}_FILE")
        if value and path:
            raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them")
        return (_content(f"{name}_FILE", path) if path else value) or default

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.text(name).lower()
        if not value:
            return default
        if value not in TRUE | FALSE:
            raise ImproperlyConfigured(f"{name}={value!r} is neither true nor false; use 1 or 0")
        return value in TRUE

    def integer(self, name: str, default: int, *, low: int, high: int) -> int:
        value = self.text(name)
        if not value:
            return default
        try:
            number = int(value)
        except ValueError:
            raise ImproperlyConfigured(f"{name}={value!r} is not a whole number") from None
        if not low <= number <= high:
            raise ImproperlyConfigured(f"{name}={number} is out of range; it may be {low} to {high}")
        return number

    def words(self, name: str, default: Iterable[str] = ()) -> list[str]:
        """A list, separated by commas."""
        found = [word.strip() for word in self.text(name).split(",")]
        return [word for word in found if word] or list(default)

    def integers(self, name: str, *, low: int, high: int) -> list[int]:
        """A list of whole numbers, separated by commas."""
        found = []
        for word in self.words(name):
            if not (word.isascii() and word.isdigit() and len(word) < 19):
                raise ImproperlyConfigured(f"{name} holds {word!r}, which is not a whole number")
            if not low <= int(word) <= high:
                raise ImproperlyConfigured(f"{name} holds {word}, which is out of range; it may be {low} to {high}")
            found.append(int(word))
        return found

    def choice(self, name: str, default: str, allowed: Iterable[str]) -> str:
        value, allowed = self.text(name, default), list(allowed)
        if value not in allowed:
            raise ImproperlyConfigured(f"{name}={value!r} is not one of {', '.join(allowed)}")
        return value

    def url(self, name: str, default: str, schemes: Iterable[str]) -> str:
        """A URL of one of ``schemes``, or ``""`` when there is none and no default.

        It may carry a password, so it may come from a file, and no message shows it.
        """
        value, schemes = self.secret(name, default), list(schemes)
        if not value:
            return ""
        scheme, mark, _ = value.partition("://")
        if not mark or scheme not in schemes:
            raise ImproperlyConfigured(f"{name} must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        try:
            _ = read_url(value) if "+" in scheme else urlsplit(value).port
        except BadInput as error:
            raise ImproperlyConfigured(f"{name} is {error.message}") from None
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not a URL: {error}") from None
        return value

    def checked(self, name: str, default: str, fits: Callable[[str], bool], wanted: str) -> str:
        """A text for which ``fits`` holds; ``wanted`` says in words what that is."""
        value = self.text(name, default)
        if not fits(value):
            raise ImproperlyConfigured(f"{name}={value!r} does not fit; it must be {wanted}")
        return value

    def _note(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


def _content(name: str, path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}={path!r} cannot be read: {error}") from None
    if not text:
        raise ImproperlyConfigured(f"{name}={path!r} is an empty file")
    return text
