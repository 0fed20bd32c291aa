"""Parses XML to a tree of elements with their places. No DTD, no custom entities, and nothing is fetched.

Document type declarations are refused: what they can contain (entities that multiply, external files, default
attributes) is either an attack or not needed by any state chart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pyexpat import ErrorString, ExpatError, ParserCreate, XMLParserType

from machines.engine.definitions.findings import Finding, make_finding
from machines.formats.text import MACHINE_SETTINGS, place

SCXML = "http://www.w3.org/2005/07/scxml"
MACHINE_KEYS = ("description", "meta", "events", "output", *MACHINE_SETTINGS)
"""Those of a machine that SCXML has no place for: they go along as JSON."""

OURS = "urn:signalbox:machines"  # for what SCXML does not have: only we write and read it
MACHINE = "urn:signalbox:machine:"  # before the name of a separate machine that an <invoke> names
MAX_DEPTH = 100  # nested elements
MAX_ELEMENTS = 50_000  # in one document
_ATTRIBUTE = re.compile(r"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_TAG = re.compile(r"<[^\s/>]+")


@dataclass(slots=True)
class Text:
    """A run of characters of an element and where in the source it begins."""

    characters: str
    start: int  # byte of the source


@dataclass(slots=True, eq=False)
class Element:
    """``space`` and ``name`` are the two parts of its name; attributes without a prefix have the space ''."""

    source: Source
    space: str
    name: str
    start: int  # byte of the source
    attributes: dict[tuple[str, str], str]
    children: list[Element] = field(default_factory=list)
    runs: list[Text] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(run.characters for run in self.runs)

    def get(self, name: str, space: str = "") -> str | None:
        return self.attributes.get((space, name))

    def all(self, *names: str) -> Iterator[Element]:
        """Return the SCXML children with these names, in document order."""
        return (child for child in self.children if child.space in (SCXML, "") and child.name in names)

    def first(self, name: str) -> Element | None:
        return next(self.all(name), None)

    def is_scxml(self, name: str) -> bool:
        return self.name == name and self.space in (SCXML, "")

    def locate(self, attribute: str = "") -> str:
        """Return the place as ``line 3, column 7``: that of the attribute if there is one of that name."""
        start = self.source.offset(self.start)
        if attribute:
            tag = _TAG.match(self.source.text, start)
            at = tag.end() if tag else start
            while found := _ATTRIBUTE.match(self.source.text, at):
                if found[1].rpartition(":")[2] == attribute:
                    return self.source.place(found.start(1))
                at = found.end()
        return self.source.place(start)

    def locate_in_text(self, offset: int) -> str:
        """Return the place of one character of ``text``."""
        for run in self.runs:
            if offset < len(run.characters):
                return self.source.place(self.source.offset(run.start) + offset)
            offset -= len(run.characters)
        return self.locate()


class Source:
    """The text of one document, also as bytes, because the parser counts in bytes."""

    def __init__(self, text: str, file: str = "") -> None:
        self.text = text
        self._file = f"{file} " if file else ""
        self.raw = text.encode()
        self._same = len(self.raw) == len(text)

    def offset(self, byte: int) -> int:
        return byte if self._same else len(self.raw[:byte].decode(errors="ignore"))

    def place(self, offset: int) -> str:
        """Return ``line 3, column 7``, after the name of the file if it is not the main document."""
        return self._file + place(self.text, offset)


class _Refusal(Exception):
    def __init__(self, found: Finding) -> None:
        super().__init__(found.message)
        self.found = found


def parse(text: str, file: str = "") -> Element | Finding:
    """Return the root element, or what is wrong with the text.

    ``file``: the name of the file, if it is not the document itself.
    """
    if not text.strip():
        return make_finding("SB131", "", "the text is empty")
    builder = _Builder(Source(text, file))
    try:
        return builder.run()
    except _Refusal as refusal:
        return refusal.found
    except ExpatError as error:
        where = builder.source.place(builder.source.offset(max(0, builder.parser.ErrorByteIndex)))
        return make_finding("SB131", where, f"not XML: {ErrorString(error.code)}")


class _Builder:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.parser: XMLParserType = ParserCreate(encoding="utf-8", namespace_separator="\n")
        self.parser.buffer_text = False  # each run of text keeps its own place
        self.parser.ordered_attributes = True
        self.parser.SetParamEntityParsing(0)
        self.parser.StartElementHandler = self._open
        self.parser.EndElementHandler = self._close
        self.parser.CharacterDataHandler = self._characters
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype
        self.parser.ExternalEntityRefHandler = self._doctype
        self._around: list[Element] = []
        self._root: Element | None = None
        self._count = 0

    def run(self) -> Element:
        self.parser.Parse(self.source.raw, True)
        assert self._root is not None
        return self._root

    def _refuse(self, code: str, message: str, hint: str = "") -> None:
        where = self.source.place(self.source.offset(max(0, self.parser.CurrentByteIndex)))
        raise _Refusal(make_finding(code, where, message, hint))

    def _doctype(self, *_: object) -> int:
        start = self.source.raw.find(b"<!DOCTYPE")
        where = self.source.place(self.source.offset(max(0, start)))
        message = "document types and entities are refused"
        raise _Refusal(make_finding("SB141", where, message, "remove the <!DOCTYPE ...>"))

    def _open(self, name: str, attributes: list[str]) -> None:
        self._count += 1
        if len(self._around) >= MAX_DEPTH:
            self._refuse("SB111", f"elements nested more than {MAX_DEPTH} levels deep")
        if self._count > MAX_ELEMENTS:
            self._refuse("SB111", f"more than {MAX_ELEMENTS} elements")
        pairs = zip(attributes[::2], attributes[1::2], strict=True)
        element = Element(
            self.source, *_halves(name), self.parser.CurrentByteIndex, {_halves(key): value for key, value in pairs}
        )
        if self._around:
            self._around[-1].children.append(element)
        else:
            self._root = element
        self._around.append(element)

    def _close(self, name: str) -> None:
        self._around.pop()

    def _characters(self, characters: str) -> None:
        self._around[-1].runs.append(Text(characters, self.parser.CurrentByteIndex))


def _halves(name: str) -> tuple[str, str]:
    space, _, local = name.rpartition("\n")
    return space, local
