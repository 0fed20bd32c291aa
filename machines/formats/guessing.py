"""Guesses the format of a text where none was given."""

from __future__ import annotations

import re

LOOK = 100_000  # characters from the start: enough to meet a word that only one format has
_XSTATE = re.compile(r'"queryLanguage"\s*:|"type"\s*:\s*"xstate\.|"predictableActionArguments"\s*:')
# Guards that are objects, actions that are names, guards called as in version 4: errors in a definition of ours.
_LIKE_XSTATE = re.compile(r'"guard"\s*:\s*\{|"(?:actions|entry|exit)"\s*:\s*\[?\s*(?:"|\{\s*"type")|"cond"\s*:')
_SCRIPT = re.compile(r"\b(?:createMachine|Machine|setup)\s*\(")
_MERMAID = re.compile(
    r"(?:---\n.*?\n---\s*|%%[^\n]*\n\s*|```+\s*mermaid\s*)*stateDiagram(?:-v2)?[ \t]*(?:;|\r?\n|$)", re.DOTALL
)
_TEMPLATE = ("initial", "map", "current", "reason")


def format_of_text(text: str | bytes) -> str:
    """Guess the format of a text.

    JSON begins with a brace and XML with an angle bracket. Typical words show which kind of JSON it is.
    """
    start = text[:LOOK] if isinstance(text, str) else bytes(text[:LOOK]).decode("utf-8", "ignore")
    start = start.lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return "scxml"
    if _MERMAID.match(start):
        return "mermaid"
    if not start.startswith(("{", "[")):
        return "xstate" if _SCRIPT.search(start) else "yaml"
    if _XSTATE.search(start):
        return "xstate"
    is_template = all(f'"{key}"' in start for key in _TEMPLATE) and '"states"' not in start
    return "sm" if is_template else "json"


def may_be_xstate(text: str | bytes) -> bool:
    """Return whether JSON that is not a definition of ours could be an XState config."""
    return bool(_LIKE_XSTATE.search(text if isinstance(text, str) else bytes(text).decode("utf-8", "ignore")))
