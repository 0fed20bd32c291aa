"""Embeds the documents that a document contains, and files next to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding
from machines.formats.scxml.elements import Element, parse
from machines.formats.text import decode

if TYPE_CHECKING:
    from .chart import Chart

MAX_NESTED = 5  # nested documents
MAX_MACHINES = 50  # that one document embeds
MAX_STEM = 12  # characters: names of embedded machines are joined, and must stay within MAX_NAME


@dataclass(frozen=True, slots=True)
class Embedded:
    """A machine inside another one. ``inputs``: its variables that a parent may set, and their fields."""

    name: str
    definition: dict[str, Any]
    inputs: dict[str, str]


Read = Callable[[Element, "Library", str], tuple[dict[str, Any], dict[str, str]]]


@dataclass(slots=True)
class Library:
    """``read`` turns an inner document into a definition; ``above`` are the files being read, to detect cycles.

    ``machine`` is the full name of the machine that contains the others.
    """

    base: Path | None
    read: Read
    machine: str
    depth: int = 0
    above: tuple[Path, ...] = ()
    found: dict[object, Embedded] = field(default_factory=dict)

    @property
    def machines(self) -> dict[str, Any]:
        return {one.name: one.definition for one in self.found.values()}

    def embed(self, chart: Chart, inner: Element, stem: str = "", *, exact: str = "") -> str | None:
        """Embed an inner <scxml> and return the name of its machine: ``exact``, or one like its own name."""
        return self._add(chart, inner, inner, inner.get("name") or stem or "child", self.above, exact)

    def embed_file(self, chart: Chart, element: Element, attribute: str, named: str) -> str | None:
        path = self.path(chart, element, attribute, named)
        if path is None:
            return None
        if path in self.above:
            chart.refuse(
                element, "a document that invokes itself cannot be published with itself", attribute, code="SB141"
            )
            return None
        text = self.text(chart, element, attribute, path)
        root = parse(text, path.name) if text is not None else None
        if isinstance(root, Finding):
            chart.report.extend([root])
            return None
        if root is not None and not root.is_scxml("scxml"):
            chart.refuse(element, f"{path.name} is no SCXML document", attribute)
            return None
        return self._add(chart, path, root, path.stem, (*self.above, path)) if root is not None else None

    def _add(
        self, chart: Chart, key: object, root: Element, stem: str, above: tuple[Path, ...], exact: str = ""
    ) -> str | None:
        if key in self.found:
            return self.found[key].name
        if self.depth >= MAX_NESTED or len(self.found) >= MAX_MACHINES:
            message = f"more than {MAX_NESTED} documents inside one another, or {MAX_MACHINES} in one"
            chart.refuse(root, message, code="SB111")
            return None
        name = exact if exact and exact not in self.machines else self._free(stem)
        inside = Library(self.base, self.read, f"{self.machine}.{name}", self.depth + 1, above)
        self.found[key] = Embedded(name, {}, {})  # reserves the name while the inner document is read
        definition, inputs = self.read(root, inside, name)
        self.found[key] = Embedded(name, definition, inputs)
        return name

    def inputs(self, name: str) -> dict[str, str]:
        return next((one.inputs for one in self.found.values() if one.name == name), {})

    def _free(self, stem: str) -> str:
        name = plain = re.sub(r"[^A-Za-z0-9_]+", "_", stem)[:MAX_STEM].strip("_") or "child"
        taken, number = self.machines, 2
        while name in taken:
            name, number = f"{plain}{number}", number + 1
        return name

    def path(self, chart: Chart, element: Element, attribute: str, named: str) -> Path | None:
        """Return the path of a file below the base. Nothing is fetched from anywhere else."""
        relative = named.strip().removeprefix("file:").removeprefix("//")
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", relative) or relative.startswith("/"):
            chart.refuse(
                element, f"{named[:80]!r} is not fetched", attribute, "name a file next to the document", "SB141"
            )
            return None
        if self.base is None:
            hint = "say where the document lies: load(..., base=folder)"
            chart.refuse(element, f"the file {named[:80]!r} cannot be found without a folder", attribute, hint, "SB141")
            return None
        path = (self.base / relative).resolve()
        if not path.is_relative_to(self.base.resolve()):
            chart.refuse(element, f"{named[:80]!r} lies outside the document's folder", attribute, code="SB141")
            return None
        return path

    def missing(self, chart: Chart, element: Element, attribute: str, path: Path) -> str:
        """Return why a file is not available when the machine runs; an empty text if it exists."""
        if path.is_file():
            return ""
        message = f"there is no file {path.name}"
        chart.warn(element, f"this fails whenever it runs: {message}", attribute)
        return message

    def text(self, chart: Chart, element: Element, attribute: str, path: Path) -> str | None:
        try:
            if path.stat().st_size > limits.MAX_DEFINITION:
                chart.refuse(
                    element, f"{path.name} is larger than {limits.MAX_DEFINITION} bytes", attribute, code="SB111"
                )
                return None
            decoded = decode(path.read_bytes())
        except OSError as error:
            chart.refuse(element, f"{path.name} cannot be read: {error.strerror}", attribute)
            return None
        if isinstance(decoded, Finding):
            chart.refuse(element, f"{path.name}: {decoded.message}", attribute)
            return None
        return decoded
