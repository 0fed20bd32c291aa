"""Parses YAML text to nodes, with libyaml if it is available. No node is resolved and no value is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

PLAIN, QUOTED, COLLECTION = "plain", "quoted", "collection"  # stand for the tag of nodes that have none


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


def _fast_loader() -> Any:
    """Return the same loader on libyaml, which is five times faster; None if the wheel was built without it."""
    parser = getattr(getattr(yaml, "cyaml", None), "CParser", None)
    return type("_FastLoader", (parser, _Plain), {"__init__": _begin(parser)}) if parser else None


def _begin(parser: Any) -> Callable[[Any, str], None]:
    def begin(self: Any, stream: str) -> None:
        parser.__init__(self, stream)
        _Plain.__init__(self)

    return begin


LOADER: Any = _fast_loader() or SlowLoader
