"""A definition as somebody handed it in: text from a file, a form or a pipe, and all that can be said about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import Finding, check
from machines.engine.errors import DefinitionError
from machines.formats import FORMATS, NOT_YET, format_of, load

GUESS = "guess"
FORMAT_NAMES = (GUESS, *FORMATS, *NOT_YET)


@dataclass(frozen=True, slots=True)
class Submission:
    """``definition`` is None when the text could not be read; ``findings`` then say where and why."""

    definition: dict[str, Any] | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_error]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.is_error]

    @property
    def summary(self) -> str:
        """``2 errors, 1 warning``, or ``no findings``."""
        counts = [(len(self.errors), "error"), (len(self.warnings), "warning")]
        said = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
        return ", ".join(said) or "no findings"


def read(text: str | bytes, *, format: str = GUESS, name: str = "") -> Submission:
    """Reads and checks; never raises. ``name`` is the file's, from which the format is guessed if it has to be."""
    try:
        definition = load(text, format=_format(text, format, name))
    except DefinitionError as error:
        return Submission(None, tuple(error.findings))
    return Submission(definition, tuple(check(definition)))


def _format(text: str | bytes, format: str, name: str) -> str:
    """By the file's ending, else by the first character: JSON definitions begin with a brace, YAML ones do not."""
    if format != GUESS:
        return format
    if "." in name:
        return format_of(name)
    start = text[:100] if isinstance(text, str) else text[:100].decode("utf-8", "ignore")
    return "json" if start.lstrip("\ufeff \t\r\n").startswith(("{", "[")) else "yaml"
