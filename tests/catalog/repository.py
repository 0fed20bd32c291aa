"""Apps of a project with definitions and handlers, made in a temporary folder."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

import pytest
from django.apps import AppConfig, apps
from django.core.management import CommandError, call_command

ORDER = """id: order
initial: New
states:
  New: {on: {pay: Paid}}
  Paid: {invoke: {src: ship_order, onDone: Shipped}, on: {cancel: New}}
  Shipped: {type: final}
"""
REFUND = """id: refund
initial: Asked
states:
  Asked: {on: {grant: Granted}}
  Granted: {type: final, entry: [{send: {event: cancel, to: "'#_scxml_order/o-1'"}}]}
"""


class Repository:
    """The apps of one test. Files are written as ``<app>/<path>``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch

    def add_app(self, name: str) -> None:
        (self.folder / name).mkdir()
        (self.folder / name / "__init__.py").write_text("")
        importlib.invalidate_caches()
        for module in (name, f"{name}.handlers"):
            self._monkeypatch.delitem(sys.modules, module, raising=False)
        config = AppConfig(name, importlib.import_module(name))
        self._monkeypatch.setitem(apps.app_configs, name, config)

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        importlib.invalidate_caches()
        return file


def sync(*arguments: str) -> tuple[str, str, str]:
    """Run ``machine sync``; return what it printed, its findings, and why it failed (empty if it did not)."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("machine", "sync", *arguments, stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), err.getvalue(), str(error)
    return out.getvalue(), err.getvalue(), ""
