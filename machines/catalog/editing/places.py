"""Where each part of a definition stands in its text, JSON or YAML, also in a text that is only half written; and the
names that may be written in it, for completion: its own, and those of the language.

The readers of ``machines.formats`` say what a text means, and stop at the first thing that has no meaning. Here nothing
is judged: what can be distinguished gets a place, so that findings, names and parts of the diagram lead to the text.
"""

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from machines.engine import definitions
from machines.engine.expressions import FUNCTIONS
from machines.formats.yaml import LOADER

Path = tuple[str | int, ...]
Range = tuple[int, int]

MOST = 60_000  # places of one text; parts beyond are found at what is around them
DEEPEST = 64
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_PART = re.compile(r'\.?([A-Za-z_$][A-Za-z0-9_$-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')
_LINE = re.compile(r"line (\d+), column (\d+)")
_WORD = re.compile(r"[^\s,:\[\]{}]+")


@dataclass(slots=True)
class Place:
    """One value. ``key``: the range of its key, quotes included; None in a list, and for the whole text. ``value``: its
    range. ``kind``: ``object``, ``list`` or ``scalar``. ``inline``: written in braces or brackets, as in JSON."""

    path: Path
    key: Range | None
    value: Range
    kind: str = "scalar"
    inline: bool = True

    @property
    def whole(self) -> Range:
        """Its key and its value."""
        return (self.key[0] if self.key else self.value[0], self.value[1])

    @property
    def mark(self) -> Range:
        """What is underlined for a finding about it: a scalar, else the key of what is larger."""
        if self.kind == "scalar" and self.value[1] > self.value[0]:
            return self.value
        return self.key or (self.value[0], min(self.value[0] + 1, self.value[1]))


@dataclass
class Places:
    """All places of a text, by path. Offsets count characters, as Python does."""

    text: str
    found: dict[Path, Place] = field(default_factory=dict)

    def add(self, path: Path, key: Range | None, value: Range, kind: str = "scalar", *, inline: bool = True) -> Place:
        place = Place(path, key, value, kind, inline)
        if len(self.found) < MOST:
            self.found[path] = place
        return place

    def __iter__(self) -> Iterator[Place]:
        return iter(self.found.values())

    def nearest(self, path: Path) -> Place | None:
        """Return the place of a path, else of the nearest part around it."""
        while path and path not in self.found:
            path = path[:-1]
        return self.found.get(path)

    def find_line(self, path: str) -> int:
        """Return the line of a finding's path, or of the nearest part around it; 0 where there is none."""
        place = self.nearest(parse_path(path))
        return self.text.count("\n", 0, place.whole[0]) + 1 if place is not None and place.path else 0

    def keys(self, path: Path) -> list[str]:
        """Return the keys of an object, in the order of the text."""
        return [place.path[-1] for place in self.children(path) if isinstance(place.path[-1], str)]

    def children(self, path: Path) -> list[Place]:
        """Return the members of an object or a list, in the order of the text."""
        size = len(path) + 1
        return [place for place in self if len(place.path) == size and place.path[:-1] == path]

    def margin(self, at: int) -> str:
        """Return the white space that begins the line of an offset."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def end_of_line(self, at: int) -> int:
        """Return the end of the line that an offset is in, where a comment or nothing follows."""
        line, _, _ = self.text[at:].partition("\n")
        return at + len(line.rstrip()) if not line.strip() or line.lstrip().startswith("#") else at


def parse_path(text: str) -> Path:
    """Parse ``states["on hold"].on.go[0]`` as a path, as far as it can be read."""
    path: list[str | int] = []
    at = 0
    while (match := _PART.match(text, at)) is not None:
        plain, index, quoted = match.groups()
        try:
            path.append(int(index) if index else json.loads(quoted, strict=False) if quoted else plain)
        except ValueError:
            break
        at = match.end()
    return tuple(path)


def locate(text: str, path: str, places: Places) -> Range:
    """Return the range of a finding's place: a path, or ``line 3, column 7``."""
    if (line := _LINE.match(path)) is not None:
        return _find_word(text, int(line[1]), int(line[2]))
    place = places.nearest(parse_path(path))
    return place.mark if place is not None else (0, min(1, len(text)))


def _find_word(text: str, line: int, column: int) -> Range:
    start = 0
    for _ in range(line - 1):
        following = text.find("\n", start)
        if following < 0:
            break
        start = following + 1
    start = min(len(text), start + column - 1)
    word = _WORD.match(text, start)
    return (start, word.end() if word else min(start + 1, len(text)))


def read_places(text: str, format: str) -> Places:
    """Read the places of a text. ``format``: json or yaml."""
    places = Places(text)
    (_read_yaml if format == "yaml" else _read_json)(places)
    return places


# ---- JSON


@dataclass(slots=True)
class _Open:
    """An object or a list that is not closed yet. ``waiting``: a key without its value; ``end``: of what was read."""

    place: Place
    index: int = 0
    waiting: tuple[str, Range] | None = None
    colon: bool = False
    end: int = 0


def _read_json(places: Places) -> None:
    around: list[_Open] = []
    for match in _TOKEN.finditer(places.text):
        word, span = match[0], match.span()
        if word in "{[":
            if len(around) >= DEEPEST:
                break
            path, key = _find_next_path(around)
            around.append(_Open(places.add(path, key, span, "object" if word == "{" else "list")))
        elif word in "}]":
            if around:
                _end_item(places, around[-1])
                shut = around.pop().place
                shut.value = (shut.value[0], span[1])
        elif word == ",":
            if around:
                _end_item(places, around[-1])
                around[-1].index += 1
        elif word == ":":
            if around:
                around[-1].colon = True
        else:
            _read_scalar(places, around, word, span)
    for one in reversed(around):
        _end_item(places, one)
        one.place.value = (one.place.value[0], len(places.text))


def _find_next_path(around: list[_Open]) -> tuple[Path, Range | None]:
    if not around:
        return (), None
    top = around[-1]
    if top.place.kind == "list":
        return (*top.place.path, top.index), None
    name, key = top.waiting or ("", None)
    top.waiting, top.colon = None, False
    return (*top.place.path, name), key


def _end_item(places: Places, top: _Open) -> None:
    """End an item; a key that has no value yet is a place, too."""
    if top.waiting is not None:
        name, key = top.waiting
        places.add((*top.place.path, name), key, (key[1], key[1]))
    top.waiting, top.colon = None, False


def _read_scalar(places: Places, around: list[_Open], word: str, span: Range) -> None:
    top = around[-1] if around else None
    if top is not None and top.place.kind == "object" and not top.colon:
        _end_item(places, top)
        top.waiting = (_unquote(word), span)
        return
    path, key = _find_next_path(around)
    places.add(path, key, span)


def _unquote(word: str) -> str:
    try:
        value = json.loads(word)
    except ValueError:
        return word.strip('"')
    return value if isinstance(value, str) else word


# ---- YAML


def _read_yaml(places: Places) -> None:
    """Walk the parser's events, which come one by one: those before a mistake are kept."""
    around: list[_Open] = []
    try:
        for event in yaml.parse(places.text, Loader=LOADER):
            if isinstance(event, yaml.CollectionStartEvent):
                if len(around) >= DEEPEST:
                    break
                _begin_yaml(places, around, event)
            elif isinstance(event, yaml.CollectionEndEvent):
                _end_yaml(places, around, event.end_mark.index)
            elif isinstance(event, yaml.ScalarEvent | yaml.AliasEvent):
                _read_yaml_scalar(places, around, event)
    except (yaml.YAMLError, ValueError, RecursionError):
        pass
    while around:
        _end_yaml(places, around, len(places.text))


def _begin_yaml(places: Places, around: list[_Open], event: Any) -> None:
    kind = "object" if isinstance(event, yaml.MappingStartEvent) else "list"
    path, key = _find_next_path(around)
    start = event.start_mark.index
    around.append(_Open(places.add(path, key, (start, start), kind, inline=bool(event.flow_style))))


def _end_yaml(places: Places, around: list[_Open], end: int) -> None:
    top = around.pop()
    _end_item(places, top)
    place = top.place
    if not place.inline:  # the parser ends a block where the next one begins, after the comments between
        end = top.end
    place.value = (place.value[0], max(end, place.value[1]))
    _count(around, place.value[1])


def _read_yaml_scalar(places: Places, around: list[_Open], event: Any) -> None:
    top, start, end = around[-1] if around else None, event.start_mark.index, event.end_mark.index
    end = len(places.text[start:end].rstrip()) + start
    if top is not None and top.place.kind == "object" and top.waiting is None:
        top.waiting, top.end = (getattr(event, "value", ""), (start, end)), end
        return
    path, key = _find_next_path(around)
    places.add(path, key, (start, end))
    _count(around, end)


def _count(around: list[_Open], end: int) -> None:
    """Count an item that ended."""
    if around:
        around[-1].end = end
        around[-1].index += around[-1].place.kind == "list"


# ---- what the browser counts


class Utf16:
    """Converts offsets to those of JavaScript, which counts a character beyond U+FFFF as two."""

    def __init__(self, text: str) -> None:
        self._wide = [] if text.isascii() else [at for at, character in enumerate(text) if character > "\uffff"]

    def __call__(self, offset: int) -> int:
        return offset + bisect.bisect_left(self._wide, offset) if self._wide else offset


MOST_NAMES = 2000  # names of a kind
WORDS = {"event": "the event", "now": "seconds", "instance": "facts of the instance", 'In("")': "whether in a state"}


def list_names(places: Places) -> dict[str, Any]:
    """List the names of a definition: ``states``, ``events``, ``fields``, ``queues``, ``handlers``, each a list in the
    order of the text, and ``payloads``: event -> its fields."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in ("states", "events", "fields", "queues", "handlers")}
    payloads: dict[str, list[str]] = {}
    for place in places:
        for kind, name in _list_names(places, place):
            if len(found[kind]) < MOST_NAMES:
                found[kind][name] = None
    for event in found["events"]:
        if fields := places.keys(("events", event, "payload", "properties")) or places.keys(
            ("events", event, "payload")
        ):
            payloads[event] = fields
    return {kind: list(names) for kind, names in found.items()} | {"payloads": payloads}


def _list_names(places: Places, place: Place) -> list[tuple[str, str]]:
    path = place.path
    if len(path) < 2 or not isinstance(path[-1], str) or not path[-1]:
        return []
    name, before, holder = path[-1], path[:-1], path[-2]
    if holder == "states" and is_state_path(path):
        return [("states", name)]
    if (holder == "on" and is_state_path(before[:-1])) or before == ("events",):
        return [("events", name)] if "*" not in name else []
    if before == ("context", "properties") or (
        before == ("context",) and ("context", "properties") not in places.found
    ):
        return [("fields", name)]
    if before == ("queues",):
        return [("queues", name)]
    if name in ("src", "queue") and place.kind == "scalar":
        text = places.text[slice(*place.value)].strip("\"'")
        return [("handlers" if name == "src" else "queues", text)] if text else []
    return []


def is_state_path(path: Path) -> bool:
    """Tell whether a path is that of a state: ``states.A.states.B``; or of the machine."""
    return len(path) % 2 == 0 and all(part == "states" for part in path[::2])


def vocabulary() -> dict[str, Any]:
    """Return the vocabulary of the editor. ``schema``: of definitions; ``functions``: name -> usage and meaning;
    ``words``: of expressions."""
    functions = {one.name: [one.usage, one.meaning] for one in FUNCTIONS.values()}
    return {"schema": definitions.schema(), "functions": functions, "words": WORDS}
