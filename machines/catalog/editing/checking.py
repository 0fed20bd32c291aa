"""One look at a text that somebody is writing: findings with places and fixes, names, parts, and the diagram.

Works on anything: half a definition, another format, a paste of something else. Nothing is kept between two calls but
what a diagram needs: the levels that were laid out (``machines.diagrams.layout.answer_cache``) and the last drawings.
"""

from __future__ import annotations

import hashlib
from typing import Any

from machines import diagrams, formats
from machines.engine.definitions import CompiledDefinition, Finding, Outline, compile_definition
from machines.engine.errors import DefinitionError

from .. import submissions
from ..submissions import GUESS, Submission
from . import fixes
from .names import list_names
from .places import Place, Places, Range, Utf16, locate, read_places

WRITTEN = ("json", "yaml")  # what is edited; other formats are read, and converted
FOLDED = 150  # states; a larger diagram is drawn with its top level folded, where it has one
MOST_FINDINGS = 500  # of one answer
MOST_PARTS = 6000
KEPT = 8  # drawings of this process: undo and redo find theirs again
_DRAWINGS: dict[str, str] = {}


def check(text: str, *, format: str = GUESS, draw: bool = True, seen: str = "", write: str = "") -> dict[str, Any]:
    """Check a text. ``draw``: with the diagram, unless it is the one ``seen`` last, by its digest. ``write``: the
    definition as text in that format, to tidy it or to convert it. Offsets are those of JavaScript."""
    found = submissions.read(text, format=format)
    written = found.format if found.format in WRITTEN else ""
    places = read_places(text, written) if written else Places(text)
    units = Utf16(text)
    answer: dict[str, Any] = {
        "format": found.format,
        "called": formats.FORMATS.get(found.format, found.format),
        "machine": _find_name(found),
        "findings": [_describe_finding(one, places, units) for one in found.findings[:MOST_FINDINGS]],
        "errors": len(found.errors),
        "warnings": len(found.warnings),
        "names": list_names(places),
        "parts": {},
        "drawing": "",
    }
    compiled = _compile(found)
    if compiled is not None and draw:
        answer |= _draw(compiled, seen)
    if compiled is not None and written:
        answer["parts"] = _list_parts(compiled, places, units)
    if write:
        answer |= _write(found, text, write)
    return answer


def locate_paths(text: str, format: str, paths: list[str]) -> list[list[int]]:
    """Return the range of each path, in offsets of JavaScript; of a format that is not written here the beginning."""
    places = read_places(text, format) if format in WRITTEN else Places(text)
    units = Utf16(text)
    return [_convert_range(locate(text, path, places), units) for path in paths]


def choose_folds(outline: Outline) -> frozenset[str]:
    """Return the states that are folded in the diagram beside the text."""
    return diagrams.top_level(outline) if len(outline.states) > FOLDED else frozenset()


def _find_name(found: Submission) -> str:
    name = (found.definition or {}).get("id")
    return name if isinstance(name, str) else ""


def _compile(found: Submission) -> CompiledDefinition | None:
    """Return the definition, if it can be drawn: errors of later rules do not stand in the way."""
    if found.compiled is not None:
        return found.compiled
    if found.definition is None:
        return None
    compiled = compile_definition(found.definition)
    return compiled if compiled.runs else None


def _describe_finding(finding: Finding, places: Places, units: Utf16) -> dict[str, Any]:
    mended = [
        {"label": fix.label, "changes": [[units(start), units(end), said] for start, end, said in fix.changes]}
        for fix in fixes.list_fixes(finding, places)
    ]
    return finding.as_dict() | {"range": _convert_range(fixes.mark(finding, places), units), "fixes": mended}


def _convert_range(found: Range, units: Utf16) -> list[int]:
    return [units(found[0]), units(found[1])]


def _list_parts(compiled: CompiledDefinition, places: Places, units: Utf16) -> dict[str, list[int]]:
    """Return id of a part of the diagram -> from and to of its text, and where the cursor goes."""
    found: dict[str, list[int]] = {}
    states, transitions = compiled.list_paths()
    parts = {diagrams.state_id(index): path for index, path in states.items()}
    parts |= {diagrams.edge_id(id): path for id, path in transitions.items()}
    for id, path in parts.items():
        place = places.nearest(path)
        if place is not None and place.path and len(found) < MOST_PARTS:
            found[id] = [*_convert_range(place.whole, units), units(_find_cursor(place))]
    return found


def _find_cursor(place: Place) -> int:
    return place.key[0] if place.key else place.value[0]


def _draw(compiled: CompiledDefinition, seen: str) -> dict[str, Any]:
    try:
        outline = compiled.outline
        folds = choose_folds(outline)
    except DefinitionError:
        return {}
    digest = hashlib.sha256(repr((diagrams.DRAWING, outline)).encode()).hexdigest()[:16]
    if digest == seen:
        return {"drawing": digest}
    return {"drawing": digest, "svg": _draw_once(digest, outline, folds), "folded": bool(folds)}


def _draw_once(digest: str, outline: Outline, folds: frozenset[str]) -> str:
    if digest not in _DRAWINGS:
        svg = diagrams.draw(outline, folds=folds).svg
        while len(_DRAWINGS) >= KEPT:
            del _DRAWINGS[next(iter(_DRAWINGS))]
        _DRAWINGS[digest] = svg
    return _DRAWINGS[digest]


def _write(found: Submission, text: str, format: str) -> dict[str, Any]:
    """Return the text in order. Comments of YAML would be lost: such a text stays as it is."""
    if found.definition is None:
        return {"refused": "The text cannot be read yet: correct the first finding."}
    if found.format == format == "yaml" and _has_comments(text):
        return {"refused": "The text has comments, which formatting would lose: it stays as it is."}
    try:
        written, _ = formats.dump(found.definition, format)
    except DefinitionError as error:
        return {"refused": str(error)}
    return {"written": written}


def _has_comments(text: str) -> bool:
    return any(line.lstrip().startswith("#") or " #" in line for line in text.split("\n"))
