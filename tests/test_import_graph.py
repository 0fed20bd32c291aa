"""Imports have no circle, between modules or between folders, and go from the dashboard to the machines to the engine.

Imports inside functions count. Migrations do not, and imports under ``TYPE_CHECKING`` only for what the engine and the
patterns need.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("machines", "dashboard")
MOST_MODULES = 16
LARGE_FOLDERS: dict[str, str] = {}
"""Folders that may hold more, with the reason."""
FORBIDDEN = [
    ("machines", "dashboard"),
    ("machines.formats.scxml", "machines.formats.xstate"),
    ("machines.formats.xstate", "machines.formats.scxml"),
    (
        "machines.formats.javascript",
        "machines.formats",
        "machines.formats.javascript",
        "machines.formats.text",
    ),
    ("dashboard.shared", "dashboard", "dashboard.shared", "dashboard.models", "dashboard.site"),
    (
        "dashboard.api",
        "dashboard",
        "dashboard.api",
        "dashboard.live",
        "dashboard.serving",
        "dashboard.shared",
        "dashboard.site",
    ),
]
"""A package, what it does not import, and what of that it may."""


class Import(NamedTuple):
    """One import of a name. ``target`` is the module of the project that it loads, or the full name outside of it;
    ``name``: what it imports, in full; ``typing``: only a type checker follows it."""

    source: str
    target: str
    file: str
    line: int
    name: str
    typing: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.target}"


Edges = dict[str, dict[str, Import]]
"""Source -> target -> the first import that leads there."""


def find_modules(root: Path) -> dict[str, Path]:
    """Return the file of each module by its full name; a package is its ``__init__``."""
    files = [file for package in PACKAGES for file in (root / package).rglob("*.py") if "migrations" not in file.parts]
    parts = {file: file.relative_to(root).with_suffix("").parts for file in sorted(files)}
    return {".".join(name[:-1] if name[-1] == "__init__" else name): file for file, name in parts.items()}


def read_imports(root: Path) -> list[Import]:
    """Parse every module and return its imports, those inside functions too."""
    modules = find_modules(root)
    return [one for module in modules for one in _imports_of(module, modules, root)]


def _imports_of(module: str, modules: dict[str, Path], root: Path) -> Iterator[Import]:
    file = modules[module]
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node, typing in _walk(ast.parse(file.read_text(encoding="utf-8"))):
        for name in _names(node, package):
            target = name if name in modules or name.rpartition(".")[0] not in modules else name.rpartition(".")[0]
            if target != module:
                yield Import(module, target, str(file.relative_to(root)), node.lineno, name, typing)


def _walk(node: ast.AST, typing: bool = False) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the imports below a node, each with whether only a type checker follows it."""
    guarded = node.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) else []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, typing or child in guarded
        elif not isinstance(child, ast.expr):
            yield from _walk(child, typing or child in guarded)


def _names(node: ast.Import | ast.ImportFrom, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" for alias in node.names]


def leave_typing_out(imports: list[Import]) -> list[Import]:
    """Return the imports that happen when the program runs."""
    return [one for one in imports if not one.typing]


def link_modules(imports: list[Import], modules: dict[str, Path]) -> Edges:
    edges: Edges = defaultdict(dict)
    for one in imports:
        if one.target in modules:
            edges[one.source].setdefault(one.target, one)
    return edges


def link_siblings(imports: list[Import], modules: dict[str, Path]) -> Edges:
    """Link what stands beside each other in one folder, files and folders, at every level."""
    edges: Edges = defaultdict(dict)
    for one in imports:
        if one.target not in modules:
            continue
        source, target = one.source.split("."), one.target.split(".")
        common = next((at for at, (a, b) in enumerate(zip(source, target, strict=False)) if a != b), None)
        if common is not None:
            ends = ".".join(source[: common + 1]), ".".join(target[: common + 1])
            edges[ends[0]].setdefault(ends[1], one)
    return edges


def find_circles(edges: Edges) -> list[list[Import]]:
    """Return one shortest circle for each module or folder that is in any, each circle once."""
    found: dict[frozenset[str], list[Import]] = {}
    edges = _prune(edges)
    for start in edges:
        circle = _shortest_circle(start, edges)
        if circle:
            found.setdefault(frozenset(name for name, _ in circle), [one for _, one in circle])
    return list(found.values())


def _prune(edges: Edges) -> Edges:
    """Remove what leads to no circle, for speed."""
    kept = {source: dict(targets) for source, targets in edges.items()}
    while True:
        left = {
            source: {target: one for target, one in targets.items() if target in kept}
            for source, targets in kept.items()
            if any(target in kept for target in targets)
        }
        if len(left) == len(kept):
            return left
        kept = left


def _shortest_circle(start: str, edges: Edges) -> list[tuple[str, Import]]:
    came: dict[str, tuple[str, Import]] = {}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for target, one in edges.get(here, {}).items():
            if target == start:
                path = [(here, one)]
                while here != start:
                    here, one = came[here]
                    path.append((here, one))
                return path[::-1]
            if target not in came:
                came[target] = (here, one)
                queue.append(target)
    return []


def describe(circles: list[list[Import]]) -> str:
    return "\n\n".join("a circle of imports:\n  " + "\n  ".join(map(str, circle)) for circle in circles)


@pytest.fixture(scope="module")
def all_imports() -> list[Import]:
    return read_imports(ROOT)


@pytest.fixture(scope="module")
def imports(all_imports: list[Import]) -> list[Import]:
    return leave_typing_out(all_imports)


@pytest.fixture(scope="module")
def modules() -> dict[str, Path]:
    return find_modules(ROOT)


@pytest.mark.parametrize("link", [link_modules, link_siblings])
def test_no_circle(imports: list[Import], modules: dict[str, Path], link: Callable[..., Edges]):
    circles = find_circles(link(imports, modules))
    assert not circles, describe(circles)


def test_imports_go_one_way(imports: list[Import]):
    wrong = [
        f"{one}, {package} may not import {other}"
        for package, other, *allowed in FORBIDDEN
        for one in imports
        if is_in(one.source, package) and is_in(one.target, other) and not is_among(one.target, allowed)
    ]
    assert not wrong, "\n".join(wrong)


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


NEEDS = {
    "machines.engine": ("machines.engine", "redis", "greenlet", "opentelemetry"),
    "machines.patterns": ("machines.engine", "machines.patterns", "redis"),
}
"""Packages that import these and the standard library, and nothing else, not even for a type checker."""
OF_THE_ENGINE = (
    "machines.engine.connection.calls",
    "machines.engine.connection.replies",
    "machines.engine.connection.routing",
    "machines.engine.publishing.catalog",
)
"""Modules of ``machines`` that only the engine and the patterns import: Lua, calls and replies."""
SPEAK_FOR_THEMSELVES = {
    "machines.insight.facts": "reads histories of each partition for itself, in portions",
    "machines.instances.sm_keys": "calls the SM commands, which are no part of Engine",
    "machines.retention.search": "searches each partition for itself",
}


def test_the_engine_and_the_patterns_need_little(all_imports: list[Import]):
    wrong = []
    for package, needed in NEEDS.items():
        allowed = (*sys.stdlib_module_names, *needed)
        outside = [one for one in all_imports if is_in(one.source, package) and not is_among(one.target, allowed)]
        wrong += [f"{one}: not the standard library, nor {', '.join(needed)}" for one in outside]
    assert not wrong, "\n".join(wrong)


def is_among(module: str, packages: Iterable[str]) -> bool:
    return any(is_in(module, package) for package in packages)


def test_the_engines_inner_modules_stay_its_own(all_imports: list[Import]):
    inside = [one for one in all_imports if is_among(one.target, OF_THE_ENGINE) and is_in(one.source, "machines")]
    wrong = [str(one) for one in inside if not is_among(one.source, (*NEEDS, *SPEAK_FOR_THEMSELVES))]
    assert not wrong, "\n".join(wrong)


LAYERS = ("models", "queries", "actions")
"""File names of a room, lowest first: what a room holds, what one reads of it, what one does to it."""


def test_layers_of_the_rooms_import_downwards(imports: list[Import]):
    wrong = [str(one) for one in imports if layer_of(one.source) < layer_of(one.target)]
    assert not wrong, "models import neither queries nor actions, queries import no actions:\n" + "\n".join(wrong)


def layer_of(module: str) -> float:
    """Return the place of a module's layer in LAYERS; what is in none may import all, and be imported by all."""
    package, *inside = module.split(".")
    found = [LAYERS.index(name) for name in inside[1:] if name in LAYERS]
    return found[0] if found and package == "machines" else float("nan")


FLOOR = re.compile(r"^ +(\d+)  ([a-z  ]+)$", re.MULTILINE)
DRAWING = r"^Rooms of `{app}`.*\n\n((?: +\d.*\n)+)"
NO_ROOMS = {"static", "templates", "templatetags", "migrations", "management"}
ROOM_OF = {"connections": "conf"}
"""Module of the app that other code imports by this name -> the room that it belongs to."""
MOST_ROOMS, MOST_FLOORS = 20, 9  # of an app


@pytest.mark.parametrize("app", PACKAGES)
def test_rooms_import_only_those_on_lower_floors_of_the_drawing(imports: list[Import], app: str):
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(DRAWING.format(app=app), text, re.MULTILINE)
    floors = {room: int(floor) for floor, rooms in FLOOR.findall(drawing) for room in rooms.split()}
    folders = {file.parent.name for file in ROOT.glob(f"{app}/*/__init__.py")} - NO_ROOMS
    assert folders == set(floors), "docs/architecture.md draws other rooms"
    assert len(folders) <= MOST_ROOMS
    assert max(floors.values()) <= MOST_FLOORS
    wrong = []
    for one in imports:
        names = (name.split(".")[1] for name in (f"{one.source}.", f"{one.target}."))
        source, target = (ROOM_OF.get(name, name) for name in names)
        if is_in(one.source, app) and is_in(one.target, app) and source != target and {source, target} <= {*floors}:
            wrong += [str(one)] * (floors[source] <= floors[target])
    assert not wrong, "these import a room that the drawing has not below theirs:\n" + "\n".join(wrong)


REGISTERED = "machines.integrations"
GATHER = {
    "machines", "machines.apps", "machines.duties", "machines.fields", "machines.handlers", "machines.models",
    "machines.signals", "machines.tasks", "machines.admin", "machines.management.reconciliation",
    "machines.templatetags.signalbox", "machines.testing.django_binding", "dashboard.catalog.presenters",
    "dashboard.catalog.views",
}  # fmt: skip
"""Modules that gather the parts of the app, and the pages of the integrations themselves."""


def test_integrations_register_themselves(imports: list[Import]):
    found = {one.source for one in imports if is_in(one.target, REGISTERED) and not is_in(one.source, REGISTERED)}
    assert found <= GATHER, f"these import {REGISTERED}: {sorted(found - GATHER)}"


ENGINES = {"get_engine", "engine_at_hand", "get_raw_client", "use_engine", "Engine", "AsyncEngine"}
"""Names that give the engine itself, which redacts nothing. Pages and API operations have
``dashboard.shared.redacted_engine``."""
ACT_FOR_NOBODY = {
    "dashboard.shared.redacted_engine": "wraps the engine for a person",
    "dashboard.live": "the hub reads for all sockets, and redacts for each",
    "dashboard.api.live": "the same topics over HTTP",
    "dashboard.serving.metrics": "figures for a monitoring system",
    "dashboard.serving": "health, system checks, request ids and the cache of the site",
    "dashboard.management": "commands of the operator of the site",
    "dashboard.demo": "traffic of the demo",
    "dashboard.demo.examples.handlers": "handlers of the demo, in a worker",
    "dashboard.demo.examples.patterns": "shows what the patterns of the demo keep in Redis",
}


def test_pages_and_api_operations_have_the_engine_of_the_person(imports: list[Import]):
    found = [one for one in imports if is_in(one.source, "dashboard") and gives_engine(one)]
    wrong = [str(one) for one in found if not is_among(one.source, ACT_FOR_NOBODY)]
    assert not wrong, "these import the engine that redacts nothing:\n" + "\n".join(wrong)
    unused = [package for package in ACT_FOR_NOBODY if not any(is_in(one.source, package) for one in found)]
    assert not unused, f"these need no place in the list any more: {unused}"


def gives_engine(one: Import) -> bool:
    """Tell whether an import gives the engine, or the module that has it."""
    return one.name.rpartition(".")[2] in ENGINES or one.name == "machines.connections"


@pytest.mark.parametrize(
    "line",
    [
        "from machines.connections import get_engine",
        "from machines import connections",
        "import machines.connections",
        "def read():\n    from machines.engine import Engine",
        "from machines.jobs.queries import get_engine as engine",
    ],
)
def test_each_way_to_the_engine_is_seen(tmp_path: Path, line: str):
    (one,) = write(tmp_path, page=line)
    assert gives_engine(one)


def test_rooms_of_the_dashboard_do_not_import_the_views_of_each_other(imports: list[Import]):
    wrong = []
    for one in imports:
        source, target = one.source.split("."), one.target.split(".")
        if source[0] == target[0] == "dashboard" and len(source) == len(target) == 3:
            wrong += [str(one)] * (source[1] != target[1] and target[2] in ("views", "urls"))
    assert not wrong, "\n".join(wrong)


def test_a_folder_holds_sixteen_modules_at_most(modules: dict[str, Path]):
    counts = Counter(str(file.parent.relative_to(ROOT)) for file in modules.values() if file.name != "__init__.py")
    large = {folder: count for folder, count in counts.items() if count > MOST_MODULES}
    assert set(large) == set(LARGE_FOLDERS), f"more than {MOST_MODULES} modules, or no longer: {large}"


# ---- the graph itself


def write(root: Path, **files: str) -> list[Import]:
    for name, text in files.items():
        file = root / "machines" / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return leave_typing_out(read_imports(root))


def test_a_circle_through_a_function_is_named_with_its_lines(tmp_path: Path):
    imports = write(tmp_path, a="from machines import b\n", b="def f():\n    from .a import x\n")
    circles = find_circles(link_modules(imports, find_modules(tmp_path)))
    assert describe(circles) == (
        "a circle of imports:\n  machines/a.py:1 imports machines.b\n  machines/b.py:2 imports machines.a"
    )


def test_a_circle_between_folders_is_found_where_no_module_is_in_one(tmp_path: Path):
    imports = write(
        tmp_path, one__a="from machines.two.b import x", two__b="", two__c="import machines.one.d", one__d=""
    )
    modules = find_modules(tmp_path)
    assert find_circles(link_modules(imports, modules)) == []
    assert len(find_circles(link_siblings(imports, modules))) == 1


def test_imports_for_a_type_checker_do_not_count(tmp_path: Path):
    guarded = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from machines.b import x\n"
    imports = write(tmp_path, a=guarded, b="import machines.a")
    assert find_circles(link_modules(imports, find_modules(tmp_path))) == []
