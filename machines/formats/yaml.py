"""Reads YAML as plain data: the core schema of YAML 1.2, without anything that runs, repeats or loops.

YAML 1.1, which PyYAML reads by default, takes the key ``on`` for true and ``12:30`` for a number.
Here only ``true`` and ``false`` are truth values, so a state's ``on:`` is what it says.
Values are built here, from the parser's nodes: no constructor of the library is ever called.

A definition is written such that readers of YAML 1.1 and 1.2 understand the same.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import yaml

from machines.engine import limits
from machines.engine.definitions.findings import Finding, make_finding, quote
from machines.engine.errors import DefinitionError

from . import json
from .text import MAX_FINDINGS

MAX_NODES = 200_000  # after aliases are expanded; a definition of 1 MiB has fewer

_STR, _MAP, _SEQ = (f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq"))
_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_OTHER_INT = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
PLAIN, QUOTED, COLLECTION = "plain", "quoted", "collection"  # stand for the tag of nodes that have none


def read(text: str) -> tuple[Any, list[Finding]]:
    """Return the value and all findings. The value counts only if there are no findings."""
    try:
        too_deep = _depth_finding(text)
        if too_deep:
            return None, [too_deep]
        root = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        return None, [_make_finding(error)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first, *_ = str(error).splitlines() or [type(error).__name__]
        return None, [make_finding("SB131", "", f"not YAML: {first}")]
    if root is None:
        return None, [make_finding("SB131", "", "the text is empty")]
    builder = _Builder()
    if builder.is_bomb(root):
        return None, builder.findings
    value = builder.build(root)
    return value, builder.findings


def is_plain_text(text: str) -> bool:
    """Return whether a text without quotes is read as a text, and not as null, a truth value or a number."""
    others = (_NULL, _BOOL, _INT, _OTHER_INT, _FLOAT, _NOT_FINITE)
    return not any(other.fullmatch(text) for other in others)


def _depth_finding(text: str) -> Finding | None:
    """Return a finding if the text is nested too deeply.

    Composing recurses, so the depth is measured on the flat stream of events first.
    """
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > limits.MAX_DEFINITION_DEPTH:
                message = f"nested more than {limits.MAX_DEFINITION_DEPTH} levels deep"
                return make_finding("SB111", _mark(event.start_mark), message)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


class _Builder:
    """Turns nodes into plain values."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._sizes: dict[int, int] = {}  # nodes below each node, aliases expanded
        self._open: set[int] = set()

    def _add(self, code: str, node: yaml.Node, message: str, hint: str = "") -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(make_finding(code, _mark(node.start_mark), message, hint))

    def is_bomb(self, root: yaml.Node) -> bool:
        """Return whether aliases make the document too large, without expanding them.

        Every anchor is counted once and multiplied by its uses.
        """
        if self._size(root) > MAX_NODES and not self.findings:
            self._add("SB135", root, f"aliases repeat their anchors to more than {MAX_NODES} values")
        return bool(self.findings)

    def _size(self, node: yaml.Node) -> int:
        if id(node) in self._open:
            self._add("SB135", node, "an anchor contains an alias of itself")
            return 0
        if id(node) not in self._sizes:
            self._open.add(id(node))
            self._sizes[id(node)] = 1 + sum(self._size(child) for child in _children(node))
            self._open.discard(id(node))
        return self._sizes[id(node)]

    def build(self, node: yaml.Node, depth: int = 0) -> Any:
        if depth > limits.MAX_DEFINITION_DEPTH:  # an alias that is deeply nested may refer to a deeply nested value
            if not any(found.code == "SB111" for found in self.findings):
                self._add("SB111", node, f"nested more than {limits.MAX_DEFINITION_DEPTH} levels deep")
            return None
        if isinstance(node, yaml.MappingNode):
            self._check_tag(node, COLLECTION, _MAP)
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            self._check_tag(node, COLLECTION, _SEQ)
            return [self.build(item, depth + 1) for item in node.value]
        return self._scalar(node)

    def _check_tag(self, node: yaml.Node, *allowed: str) -> None:
        if node.tag not in allowed:
            self._add("SB135", node, f"the tag {quote(node.tag)} is not allowed", "only plain data can be read")

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.build(key_node, depth + 1)
            value = self.build(value_node, depth + 1)
            if not isinstance(key, str):
                self._add("SB110", key_node, "a key is not text", "write it in quotes")
            elif key == "<<" and key_node.tag == PLAIN:
                self._add("SB135", key_node, "merge keys (<<) are not allowed", "write the keys out")
            elif key in result:
                self._add("SB132", key_node, f"the key {quote(key)} stands twice in one mapping")
            else:
                result[key] = value
        return result

    def _scalar(self, node: yaml.Node) -> Any:
        self._check_tag(node, PLAIN, QUOTED, _STR)
        text: str = node.value
        if node.tag != PLAIN:
            return text
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text.lower() == "true"
        return self._number(node, text)

    def _number(self, node: yaml.Node, text: str) -> Any:
        if _NOT_FINITE.fullmatch(text):
            self._add("SB133", node, f"{text} is not a finite number", "write null, or a text")
            return None
        if _INT.fullmatch(text) or _OTHER_INT.fullmatch(text):
            return self._integer(node, text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                self._add("SB133", node, "the number is too large")
            return number
        return text

    def _integer(self, node: yaml.Node, text: str) -> int:
        number = 0
        if len(text) <= 20:
            number = int(text, 0) if _OTHER_INT.fullmatch(text) else int(text)
        if len(text) > 20 or abs(number) > limits.MAX_INTEGER:
            self._add("SB133", node, "an integer of 2**53 or more cannot be held exactly", "write it in quotes")
        return number


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _mark(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _make_finding(error: yaml.MarkedYAMLError) -> Finding:
    problem = error.problem or error.context or "cannot be read"
    if isinstance(error, yaml.composer.ComposerError) and "document" in f"{error.context} {problem}":
        return make_finding("SB135", _mark(error.problem_mark), "the text holds several documents", "keep one")
    return make_finding("SB131", _mark(error.problem_mark or error.context_mark), f"not YAML: {problem}")


class _Plain(yaml.resolver.BaseResolver):
    """Records only whether a scalar was plain or quoted; ``_Builder`` decides what it means."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] else QUOTED
        return COLLECTION


class SlowLoader(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer, _Plain):
    def __init__(self, stream: str) -> None:
        yaml.reader.Reader.__init__(self, stream)
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        yaml.composer.Composer.__init__(self)
        _Plain.__init__(self)


def _make_fast_loader() -> Any:
    """Return the same loader on libyaml, which is five times faster; None if the wheel was built without it."""
    parser = getattr(getattr(yaml, "cyaml", None), "CParser", None)
    return type("_FastLoader", (parser, _Plain), {"__init__": _begin(parser)}) if parser else None


def _begin(parser: Any) -> Callable[[Any, str], None]:
    def begin(self: Any, stream: str) -> None:
        parser.__init__(self, stream)
        _Plain.__init__(self)

    return begin


LOADER: Any = _make_fast_loader() or SlowLoader


class Dumper(yaml.SafeDumper):
    """Writes no anchors, and quotes every text that some reader would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if is_plain_text(text) and text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Write the definition in its own order. Nothing is lost."""
    json.write(definition)  # refuses what is not JSON: it is not a definition, and PyYAML might still write it
    try:
        text = yaml.dump(definition, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1 << 30)
    except yaml.YAMLError as error:
        raise DefinitionError([make_finding("SB110", "", f"this cannot be written as YAML: {error}")]) from error
    return text, []
