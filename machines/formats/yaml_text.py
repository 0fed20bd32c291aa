"""Writes definitions as YAML that means the same to readers of YAML 1.1 and 1.2."""

from __future__ import annotations

from typing import Any

import yaml

from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.errors import DefinitionError

from . import json
from .yaml import is_plain_text


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, and quotes every text that some reader would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if is_plain_text(text) and text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Write the definition in its own order. Nothing is lost."""
    json.write(definition)  # refuses what is not JSON: it is not a definition, and PyYAML might still write it
    try:
        text = yaml.dump(definition, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 30)
    except yaml.YAMLError as error:
        raise DefinitionError([make_finding("SB110", "", f"this cannot be written as YAML: {error}")]) from error
    return text, []
