"""The public names of the Python packages: how they are called."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import machines
from tests.cases import for_each

MOST = 8
PACKAGES = (
    "machines.engine",
    "machines.patterns",
    "machines.worker",
    "machines.instances.bulks",
    "machines.mapreduce",
    *(f"machines.{file.parent.name}.actions" for file in sorted(Path(machines.__file__).parent.glob("*/actions.py"))),
)


def callables_of(package: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions, classes and public methods behind the names in ``__all__``; a module stands for what it holds."""
    module = importlib.import_module(package)
    if not hasattr(module, "__all__"):
        yield from _callables(package, module)
    for name in getattr(module, "__all__", ()):
        yield from _callables(f"{package}.{name}", getattr(module, name))


def _callables(path: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if inspect.ismodule(value):
        own = {name: one for name, one in vars(value).items() if getattr(one, "__module__", "") == value.__name__}
        for name, one in own.items():
            if not name.startswith("_"):
                yield from _callables(f"{path}.{name}", one)
    elif inspect.isclass(value):
        yield path, value
        for name in dir(value):
            if not name.startswith("_") and inspect.isroutine(method := getattr(value, name)):
                yield f"{path}.{name}", method
    elif callable(value):
        yield path, value


def positional(function: Callable[..., Any]) -> list[str]:
    """The parameters that can be given without their name, but for ``self`` and ``cls``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # written in C, without a signature
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in kinds and one.name not in ("self", "cls")]


@for_each("package", PACKAGES)
def test_nothing_public_takes_more_than_eight_parameters_by_position(package: str) -> None:
    found = dict(callables_of(package))
    assert found
    assert {path: many for path, one in found.items() if len(many := positional(one)) > MOST} == {}


def test_the_contract_of_the_engine_is_called_as_it_is_written(engine) -> None:
    engine.publish({"id": "pair", "initial": "A", "states": {"A": {"on": {"go": "B"}}, "B": {}}})
    first = engine.create("pair", "x")
    after = engine.fire(
        "pair", first.id, "go", {}, expect=first.revision, key="req-42", actor="alice", reason="because"
    )  # fmt: skip
    assert engine.get("pair", "x").state == after.state == "B"
    assert not engine.explain("pair", "x", "go", {}).taken
    assert engine.fire_many([("pair", "x", "go", {}, 7)])[0].expected == 7


def list_records() -> Iterator[tuple[str, Any]]:
    """Yield the fields of every record that these packages define, with their types."""
    for package in map(importlib.import_module, (*PACKAGES, "machines.instances.archive", "machines.jobs.failures")):
        for found in pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, one in vars(module).items():
                if dataclasses.is_dataclass(one) and one.__module__ == module.__name__:
                    for field in dataclasses.fields(one):
                        yield f"{module.__name__}.{name}.{field.name}", field.type


def test_no_record_names_a_number_definition() -> None:
    found = dict(list_records())
    assert found["machines.engine.records.Instance.version"] == "int"
    assert [path for path, type in found.items() if path.endswith(".definition") and "int" in str(type)] == []


def test_a_revision_counts_steps_and_a_version_numbers_a_definition(engine) -> None:
    engine.publish({"id": "pair", "initial": "A", "states": {"A": {"on": {"go": "B"}}, "B": {"on": {"back": "A"}}}})
    assert engine.create("pair", "y").revision == 1
    after = engine.fire("pair", "y", "go", expect=1)
    assert (after.revision, after.version) == (2, 1)
    assert [(step.revision, step.version) for step in engine.history("pair", "y")] == [(2, 1), (1, 1)]
    assert engine.explain("pair", "y", "back").revision == 2
    assert engine.preview("pair", "y", "reset").revision == 2
