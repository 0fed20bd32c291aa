"""Invokes: the handler's name is the name of the actor. What XState has no place for stays below ``meta``."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.report import Path
from machines.engine.definitions.scope import Branch
from machines.formats.xstate.dialect import INVOKE_KEYS, OURS

from .context import Writing, one_or_many, single
from .transitions import write_transitions
from .values import write_value


def write_invokes(invokes: Any, path: Path, source: Branch, writing: Writing) -> Any:
    several = isinstance(invokes, list)
    found = enumerate(one_or_many(invokes))
    return single([_write(one, (*path, place) if several else path, source, writing) for place, one in found])


def _write(invoke: dict[str, Any], path: Path, source: Branch, writing: Writing) -> dict[str, Any]:
    written: dict[str, Any] = {"src": invoke["src"] if isinstance(invoke["src"], str) else "computed"}
    written |= {key: invoke[key] for key in ("id", "description") if key in invoke}
    if "input" in invoke:
        written["input"] = write_value(invoke["input"])
    for key in ("onDone", "onError"):
        if key in invoke:
            written[key] = write_transitions(invoke[key], (*path, key), source, writing)
    ours = {key: invoke[key] for key in INVOKE_KEYS if key in invoke and key not in written}
    if written["src"] == "computed":
        ours["src"] = invoke["src"]
    for key in ours:
        message = f'XState has no "{key}" for an invoke; it stays below "meta", where only Signalbox reads it'
        writing.once("SB222", (*path, key), message)
    meta = {**invoke.get("meta", {}), **({OURS: ours} if ours else {})}
    return written | ({"meta": meta} if meta else {})
