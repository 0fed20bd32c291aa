"""The engine and the patterns need Redis and nothing else. ``tests/test_import_graph.py`` has the rest of the graph."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "machines" / "engine"
PATTERNS = ROOT / "machines" / "patterns"
OUTSIDE = [p for p in (ROOT / "machines").rglob("*.py") if ENGINE not in p.parents]
STANDARD = sys.stdlib_module_names


def imported(path: Path) -> set[str]:
    """Full names of what a file imports, relative ones spelled out."""
    found: set[str] = set()
    package = list(path.relative_to(ROOT).with_suffix("").parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names if not node.module}
    return found


@pytest.mark.parametrize("path", sorted(ENGINE.rglob("*.py")), ids=lambda p: str(p.relative_to(ENGINE)))
def test_the_engine_imports_itself_redis_greenlet_and_the_standard_library(path):
    for name in imported(path):
        top = name.partition(".")[0]
        assert top in STANDARD | {"redis", "greenlet"} or name.startswith("machines.engine"), (
            f"{path.name} imports {name}"
        )


@pytest.mark.parametrize("path", sorted(PATTERNS.rglob("*.py")), ids=lambda p: p.name)
def test_patterns_import_the_engine_redis_and_the_standard_library(path):
    for name in imported(path):
        ours = name.startswith(("machines.engine", "machines.patterns"))
        assert ours or name.partition(".")[0] in STANDARD | {"redis"}, f"{path.name} imports {name}"


@pytest.mark.parametrize(
    "path", sorted(path for path in OUTSIDE if PATTERNS not in path.parents), ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_engines_inner_modules_stay_its_own(path):
    """Lua, calls and replies are the engine's business: what others use is its surface."""
    inner = (
        "machines.engine.connection.calls",
        "machines.engine.publishing.catalog",
        "machines.engine.connection.replies",
        "machines.engine.connection.routing",
    )
    assert not [name for name in imported(path) if name.startswith(inner)]


def test_it_loads_where_django_and_channels_are_missing():
    code = """
import sys
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


def test_all_that_is_public_is_there():
    import machines.engine as engine

    assert [name for name in engine.__all__ if not hasattr(engine, name)] == []
    raised = {name for name, value in vars(engine.errors).items() if isinstance(value, type)}
    assert raised <= {*engine.__all__, "Any", "Mapping", "Sequence"}
