"""A definition as somebody handed it in: text from a file, a form or a pipe, and all that can be said about it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machines import formats, shipping
from machines.engine.definitions import Finding, check

GUESS = "guess"
FORMAT_NAMES = (GUESS, *formats.READERS)


@dataclass(frozen=True, slots=True)
class Submission:
    """``definition`` is None when the text could not be read; ``findings`` then say where and why.

    Next to findings of a reader that are errors it is a draft: what could be read, for people to go on with.
    """

    definition: dict[str, Any] | None
    findings: tuple[Finding, ...]
    format: str = "json"

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


def read(
    text: str | bytes, *, format: str = GUESS, name: str = "", id: str = "", base: Path | None = None
) -> Submission:
    """Reads and checks; never raises. ``name`` is the file's, from which the format is guessed if it has to be.

    ``id`` names the machine, whatever the text calls it. ``base``: its file or folder, where it may name others.
    """
    if format != GUESS:
        return _read(text, format, id, base)
    found = _read(text, formats.guess(text, name), id, base)
    if found.format == "json" and found.definition and found.errors and formats.may_be_xstate(text):
        return _read(text, "xstate", id, base)
    return found


def _read(text: str | bytes, format: str, id: str, base: Path | None) -> Submission:
    definition, findings = formats.read(text, format, base)
    if definition is None:
        return Submission(None, tuple(findings), format)
    if id:
        definition = {**definition, "id": id}
        findings = [finding for finding in findings if finding.path != "id"]
    if not any(finding.is_error for finding in findings):
        findings = [*findings, *findings_of(definition)]
    return Submission(definition, tuple(findings), format)


def findings_of(definition: object) -> list[Finding]:
    """All there is to say of a definition before it is published; never raises."""
    return [*check(definition), *shipping.shadowing(definition)]
