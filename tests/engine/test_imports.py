"""The engine loads where nothing but Redis' client is installed. ``tests/test_import_graph.py`` has what it imports."""

import subprocess
import sys

import pytest

from tests.engine.builders import ROOT


@pytest.mark.faults
def test_it_loads_where_django_and_channels_are_missing():
    code = """
import sys

import pytest
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("django", "channels", "dashboard", "yaml", "graphviz"):
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Missing())
import machines.engine
from machines.engine import Engine
Engine.from_url("redis://localhost:1")
print(sorted(name for name in sys.modules if name.startswith("machines") and not name.startswith("machines.engine")))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['machines']"


def test_the_command_says_its_version_without_it():
    code = "import sys; from machines import cli; print(cli.main(['--version']), 'machines.engine' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["0", "False"]


def test_all_that_is_public_is_there():
    import machines.engine as engine

    assert [name for name in engine.__all__ if not hasattr(engine, name)] == []
    raised = {name for name, value in vars(engine.errors).items() if isinstance(value, type)}
    assert raised <= {*engine.__all__, "Any", "Mapping", "Sequence"}
