"""Reads a submitted definition: text from a file, a form or a pipe, with its format and findings. Other parts of the
product register what they add to publishing in ``checks`` and ``followers`` when the app is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from machines import formats
from machines.engine import Engine
from machines.engine.definitions import CompiledDefinition, Finding, compile_definition

from . import builtin_machines

GUESS = "guess"
FORMAT_NAMES = (GUESS, *formats.READERS)


@dataclass(frozen=True, slots=True)
class Submission:
    """``definition`` is None when the text could not be read; ``findings`` then say where and why.

    Next to findings of a reader that are errors it is a draft: what could be read, for people to go on with.
    ``compiled``: the same definition as it is handed on to be published or drawn; None where it is not wanted, or there
    are errors.
    """

    definition: dict[str, Any] | None
    findings: tuple[Finding, ...]
    format: str = "json"
    compiled: CompiledDefinition | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls, definition: dict[str, Any] | CompiledDefinition, *, before: Iterable[Finding] = (), format: str = "json"
    ) -> Submission:
        """Return a definition with all there is to say about it before it is published, after what was said
        ``before``."""
        compiled = compile_definition(definition)
        findings = (
            *before,
            *compiled.findings,
            *builtin_machines.shadowing(compiled.source),
            *builtin_machines.find_reserved(compiled),
            *(finding for check in checks for finding in check(compiled)),
        )
        fit = not any(finding.is_error for finding in findings)
        return cls(compiled.source, findings, format, compiled if fit else None)

    @property
    def name(self) -> str:
        """Return what it calls its machine; empty where it does not."""
        name = (self.definition or {}).get("id")
        return name if isinstance(name, str) else ""

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
    """Read and check; never raises. ``name`` is the file's, from which the format is guessed if it has to be.

    ``id`` names the machine, whatever the text calls it. ``base``: its file or folder, where it may name others.
    """
    if format != GUESS:
        return _read(text, format, id, base)
    found = _read(text, formats.guess(text, name), id, base)
    if found.format == "json" and found.definition and found.errors and formats.may_be_xstate(text):
        return _read(text, "xstate", id, base)
    return _name_formats(found, formats.format_of(name, "") == "")


def _read(text: str | bytes, format: str, id: str, base: Path | None) -> Submission:
    return _submit(*formats.read(text, format, base), format, id)


def _name_formats(found: Submission, unnamed: bool) -> Submission:
    """Say which formats are read where a text may be of another one: it has no object of states, or it was taken for
    YAML for want of a file name and is none."""
    is_definition = found.definition is not None and isinstance(found.definition.get("states"), dict)
    if is_definition or found.format not in ("json", "yaml"):
        return found
    hint = f"formats that are read: {', '.join(formats.READERS)}"
    is_no_yaml = found.definition is None and unnamed and found.format == "yaml"
    findings = tuple(
        replace(one, hint=hint) if one.path == "states" or (is_no_yaml and one.code in ("SB104", "SB131")) else one
        for one in found.findings
    )
    return replace(found, findings=findings)


def _submit(definition: dict[str, Any] | None, findings: list[Finding], format: str, id: str) -> Submission:
    if definition is None:
        return Submission(None, tuple(findings), format)
    if id:
        definition = {**definition, "id": id}
        findings = [finding for finding in findings if finding.path != "id"]
    if any(finding.is_error for finding in findings):
        return Submission(definition, tuple(findings), format)
    return Submission.of(definition, before=findings, format=format)


checks: list[Callable[[CompiledDefinition], list[Finding]]] = []
"""Find what does not fit in a definition beside what the engine finds."""
followers: list[Callable[[Engine, str], None]] = []
"""Called with the name of a machine that was published, or whose current version is another one."""


def follow(engine: Engine, machine: str) -> None:
    for follower in followers:
        follower(engine, machine)
