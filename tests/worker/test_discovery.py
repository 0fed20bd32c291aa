"""Each installed app's handlers.py is imported."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError

from machines.worker.registry import discover


def test_the_handlers_of_installed_apps_are_found():
    assert {"do_start", "do_activate", "do_entitlement", "do_finish"} <= set(discover())


def test_an_app_without_handlers_is_fine():
    assert "dashboard" in [config.name for config in apps.get_app_configs()]
    discover()


def test_an_app_whose_handlers_cannot_be_imported_stops_the_start(monkeypatch, tmp_path):
    (tmp_path / "broken_app").mkdir()
    (tmp_path / "broken_app" / "__init__.py").touch()
    (tmp_path / "broken_app" / "handlers.py").write_text("import something_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    app = SimpleNamespace(name="broken_app", module=__import__("broken_app"))
    monkeypatch.setattr(apps, "get_app_configs", lambda: [app])
    with pytest.raises(ModuleNotFoundError, match="something_that_is_not_there"):
        discover()
    sys.modules.pop("broken_app", None)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"concurrency": 0}, "1 to 1000"),
        ({"queues": "a,two words"}, "two words"),
        ({"drain": True, "once": True}, "one of drain and once"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_a_clear_word(given, word):
    with pytest.raises(CommandError, match=word):
        call_command("worker", **given)
