"""One look at a text that an author is writing: findings with places and fixes, names, parts, and the diagram.

Works on anything: half a definition, another format, a paste of something else. Nothing is kept between two calls but
what a diagram needs: the levels that were laid out (``machines.diagrams.layout.graphviz``) and the last drawings.

A fix changes the text so that a finding is mended, where there is one right way, or few. It is offered and never
applied by itself. Names are replaced in the place that the finding names and nowhere else.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from machines import diagrams, formats
from machines.engine.definitions import CompiledDefinition, Finding, Outline, compile_definition
from machines.engine.errors import DefinitionError
from machines.engine.limits import MAX_NAME

from .. import submissions
from ..submissions import GUESS, Submission
from .changes import change
from .edits import Edit, insert_keys
from .places import Path, Places, Range, Utf16, list_names, locate, parse_path, read_places

WRITTEN = ("json", "yaml")  # what is edited; other formats are read, and converted
FOLDED = 150  # states; a larger diagram is drawn with its top level folded, where it has one
MOST_FINDINGS = 500  # of one answer
MOST_PARTS = 6000
KEPT = 8  # drawings of this process: undo and redo find theirs again
_DRAWINGS: dict[str, str] = {}


def check(
    text: str,
    *,
    format: str = GUESS,
    draw: bool = True,
    seen: str = "",
    write: str = "",
    wanted: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Check a text. ``draw``: with the diagram, unless it is the one ``seen`` last, by its digest. ``write``: the
    definition as text in that format, to tidy it or to convert it. ``wanted``: a change, as ``changes.change`` makes
    it, that is answered as ``change``. Offsets are those of JavaScript."""
    found = submissions.read(text, format=format)
    written = found.format if found.format in WRITTEN else ""
    places = read_places(text, written) if written else Places(text)
    units = Utf16(text)
    answer: dict[str, Any] = {
        "format": found.format,
        "called": formats.FORMATS.get(found.format, found.format),
        "machine": found.name,
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
    if wanted:
        answer["change"] = changed = change(text, found.format, wanted)
        changed["edits"] = [[units(start), units(end), said] for start, end, said in changed.get("edits", ())]
    return answer


def locate_paths(text: str, format: str, paths: list[str]) -> list[list[int]]:
    """Return the range of each path, in offsets of JavaScript; of a format that is not written here the beginning."""
    places = read_places(text, format) if format in WRITTEN else Places(text)
    units = Utf16(text)
    return [_convert_range(locate(text, path, places), units) for path in paths]


def choose_folds(outline: Outline) -> frozenset[str]:
    """Return the states that are folded in the diagram beside the text."""
    return diagrams.top_level(outline) if len(outline.states) > FOLDED else frozenset()


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
        for fix in list_fixes(finding, places)
    ]
    return finding.as_dict() | {"range": _convert_range(mark(finding, places), units), "fixes": mended}


def _convert_range(found: Range, units: Utf16) -> list[int]:
    return [units(found[0]), units(found[1])]


def _list_parts(compiled: CompiledDefinition, places: Places, units: Utf16) -> dict[str, list[int]]:
    """Return id of a part of the diagram -> from and to of its text."""
    found: dict[str, list[int]] = {}
    states, transitions = compiled.list_paths()
    parts = {diagrams.state_id(index): path for index, path in states.items()}
    parts |= {diagrams.edge_id(id): path for id, path in transitions.items()}
    for id, path in parts.items():
        place = places.nearest(path)
        if place is not None and place.path and len(found) < MOST_PARTS:
            found[id] = _convert_range(place.whole, units)
    return found


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
        svg = diagrams.draw(outline, folds=folds, merged=False)
        while len(_DRAWINGS) >= KEPT:
            del _DRAWINGS[next(iter(_DRAWINGS))]
        _DRAWINGS[digest] = svg
    return _DRAWINGS[digest]


def _write(found: Submission, text: str, format: str) -> dict[str, Any]:
    """Return the text in order. Comments of YAML would be lost: such a text stays as it is."""
    if found.definition is None:
        return {"refused": "The text cannot be read yet: correct the first finding."}
    if found.format == format == "yaml" and any(re.search(r"^\s*#| #", line) for line in text.split("\n")):
        return {"refused": "The text has comments, which formatting would lose: it stays as it is."}
    try:
        written, _ = formats.dump(found.definition, format)
    except DefinitionError as error:
        return {"refused": str(error)}
    return {"written": written}


_MEANT = re.compile(r'did you mean "([^"\\…]+)"\?')
_WRITE = re.compile(r'write "(\w+)": ("[^"\\…]*")')
_QUOTED = re.compile(r'"([^"\\…]+)"')
_CALLED = re.compile(r'called "([^"\\…]+)"')
_SAFE = re.compile(r"[\w .-]+")  # stands in quotes of JSON and bare in YAML as it is
_TRAILING_COMMA = re.compile(r",\s*[}\]]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Fix:
    """``changes``: offsets from and to, and what stands there then."""

    label: str
    changes: tuple[Edit, ...]


def mark(finding: Finding, places: Places) -> Range:
    """Return the range that is underlined: of an expression or a key the one name that is wrong, where it is named."""
    whole = locate(places.text, finding.path, places)
    place = places.found.get(parse_path(finding.path))
    if place is not None and place.key is not None and place.path[-1] == _find_wrong_name(finding):
        return place.key
    return _find_word(places.text, _find_wrong_name(finding), whole) or whole


def list_fixes(finding: Finding, places: Places) -> list[Fix]:
    at = locate(places.text, finding.path, places)
    found = [_replace_name(finding, places, at), _add_key(finding, places)]
    if make := _MAKERS.get(finding.code):
        found.append(make(finding, places, at))
    return [fix for fix in found if fix is not None]


def _find_wrong_name(finding: Finding) -> str:
    match = _CALLED.search(finding.message) or _QUOTED.search(finding.message)
    return match[1] if match else ""


def _find_word(text: str, word: str, within: Range) -> Range | None:
    if not word:
        return None
    found = re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])").search(text, *within)
    return found.span() if found else None


def _replace_name(finding: Finding, places: Places, at: Range) -> Fix | None:
    """Return the name that was meant, in place of the one that is there."""
    meant = _MEANT.search(finding.hint)
    if meant is None or not _SAFE.fullmatch(meant[1]):
        return None
    place = places.found.get(parse_path(finding.path))
    wrong = _find_wrong_name(finding)
    spots = [_find_word(places.text, wrong, at)]
    if place is not None and place.key is not None and place.path[-1] == wrong:
        spots.insert(0, _find_word(places.text, wrong, place.key))
    spot = next(filter(None, spots), None)
    return Fix(f"Replace by {meant[1]}", ((*spot, meant[1]),)) if spot else None


def _add_key(finding: Finding, places: Places) -> Fix | None:
    """Return a key that is missing, with the value that the hint names."""
    said = _WRITE.search(finding.hint)
    path = parse_path(finding.path)
    if said is None or not path or path[-1] != said[1] or path in places.found:
        return None
    value = json.loads(said[2])
    return _insert(places, path[:-1], {said[1]: value}, f"Add {said[1]}: {value}")


def _insert(places: Places, path: Path, added: dict[str, Any], label: str, *, last: bool = False) -> Fix | None:
    edit = insert_keys(places, path, added, last=last)
    return Fix(label, (edit,)) if edit else None


def _declare_field(finding: Finding, places: Places, at: Range) -> Fix | None:
    """Return a data field that is used and not declared."""
    name, label = _find_wrong_name(finding), "Declare the field {} in context"
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        return None
    if places.found.get(("context", "properties")) is not None:
        return _insert(places, ("context", "properties"), {name: {}}, label.format(name))
    if places.found.get(("context",)) is not None:
        return _insert(places, ("context",), {name: None}, label.format(name))
    return _insert(places, (), {"context": {name: None}}, label.format(name))


def _add_state(finding: Finding, places: Places, at: Range) -> Fix | None:
    name, path = _find_wrong_name(finding), parse_path(finding.path)
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME or path[:1] not in (("states",), ("initial",)):
        return None
    depth = 0
    while path[depth : depth + 1] == ("states",) and path[depth + 2 : depth + 3] == ("states",):
        depth += 2
    return _insert(places, (*path[:depth], "states"), {name: {}}, f"Add the state {name}", last=True)


def _make_final(finding: Finding, places: Places, at: Range) -> Fix | None:
    path = parse_path(finding.path)
    place = places.found.get(path)
    if place is None or (*path, "type") in places.found:
        return None
    return _insert(places, path, {"type": "final"}, f"Make {path[-1] if path else 'it'} a final state")


def _fix_comma(finding: Finding, places: Places, at: Range) -> Fix | None:
    """Fix JSON with one comma too many, or one too few."""
    text = places.text
    comma = text.rfind(",", 0, at[0] + 1)  # Python names the comma itself from 3.13 on, the bracket after it before
    if (found := _TRAILING_COMMA.match(text, comma)) and found.end() > at[0]:
        return Fix("Remove the comma", ((comma, comma + 1, ""),))
    before = len(text[: at[0]].rstrip())
    if "',' delimiter" in finding.message and before:
        return Fix("Add a comma", ((before, before, ","),))
    return None


_MAKERS: dict[str, Any] = {"SB101": _add_state, "SB102": _declare_field, "SB202": _make_final, "SB131": _fix_comma}
