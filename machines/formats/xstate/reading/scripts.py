"""JavaScript inside a config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.engine.definitions.findings import Finding
from machines.engine.definitions.place import Place

from .context import Scope


@dataclass(frozen=True, slots=True)
class Untranslated:
    why: str
    hint: str = ""


def is_script(text: str) -> bool:
    return False


def read(text: str) -> tuple[Any, list[Finding]]:
    raise NotImplementedError


def translate(code: str, scope: Scope, place: Place) -> str | Untranslated:
    return Untranslated("not yet")


def guard_named(name: str, scope: Scope, place: Place) -> str | None:
    return None


def delay_named(name: str, scope: Scope, place: Place) -> str | None:
    return None


def actions_named(name: str, scope: Scope, place: Place) -> list[dict[str, Any]] | None:
    return None
