"""Definitions: check one, compile it to the program that runs inside Redis, outline it for people.

Pure Python: needs neither Redis nor Django. ``schema.json`` in this folder describes the same document for editors
(JSON Schema, draft 2020-12).
"""

from typing import Any

from .compiled import CompiledDefinition, Recipient, compile_definition, find_recipients
from .findings import Finding, make_finding, quote, render
from .outline import EventOutline, FieldOutline, InvokeOutline, Outline, StateOutline, TransitionOutline
from .place import SCHEMA, schema
from .program import compute_digest
from .reading.document import find_embedded, list_embedded_names

__all__ = [
    "SCHEMA",
    "CompiledDefinition",
    "EventOutline",
    "FieldOutline",
    "Finding",
    "InvokeOutline",
    "Outline",
    "Recipient",
    "StateOutline",
    "TransitionOutline",
    "check",
    "compile",
    "compile_definition",
    "compute_digest",
    "find_embedded",
    "find_recipients",
    "list_embedded_names",
    "make_finding",
    "outline",
    "quote",
    "render",
    "schema",
]


def check(definition: object) -> list[Finding]:
    """Return every finding, errors and warnings, in document order. Never raises, whatever it is given."""
    return list(compile_definition(definition).findings)


def compile(definition: object) -> dict[str, Any]:
    """Compile a definition to its program. Raises DefinitionError, with all findings, when one is an error that no
    release ever let pass: what was published must go on running. Call ``check`` before publishing."""
    return compile_definition(definition).program


def outline(definition: object) -> Outline:
    """Outline a definition. Raises DefinitionError like ``compile``."""
    return compile_definition(definition).outline
