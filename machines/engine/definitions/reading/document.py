"""Reads the whole document: a plain copy first, then its parts, then the checks that need all of them. It also finds
the definitions that are embedded in one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from machines.engine import limits
from machines.engine.definitions.checks.review import review
from machines.engine.definitions.fields import read_context, read_events
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.model import Machine, Start, State
from machines.engine.definitions.place import Place, PlainCopier, TooLarge, list_keys, read_checked, require_key
from machines.engine.definitions.scope import Scope, Tree
from machines.engine.definitions.values import read_value

from .approvers import read_approvers
from .machine_settings import read_accepts, read_approval, read_index, read_properties, read_retention, read_schedules
from .states import MACHINE_KEYS, read_root, read_states
from .transitions import read_queues

_ERRORS = ("refuse", "raise")
_HINTS = {"data": 'write "context"', "name": 'write "id"', "key": 'write "id"', "schema": 'write "context"'}


def read_document(definition: object) -> tuple[Machine | None, Report]:
    """Read a definition. Never raises. The machine is None when nothing could be read."""
    report = Report()
    try:
        document = PlainCopier(report.add).copy(definition)
    except TooLarge:
        report.add("SB111", (), f"the definition is larger than {limits.MAX_DEFINITION} bytes")
        return None, report
    report.document = document
    machine = _read_document(document, report)
    _check_embedded(document, report)
    return machine, report


def read_sound_machine(definition: object) -> Machine | None:
    """Read a definition, and the machines inside it, without the checks that need all of it. Never raises."""
    report = Report()
    try:
        place = Place(PlainCopier(report.add).copy(definition), (), report)
    except TooLarge:
        return None
    return _read_machine(place) if isinstance(place.value, dict) else None


def _read_document(document: Any, report: Report) -> Machine | None:
    place = Place(document, (), report)
    if not place.is_object("an object", 'a definition looks like {"id": ..., "initial": ..., "states": {...}}'):
        return None
    machine = _read_machine(place)
    review(machine, report)
    _read_embedded(place.part("machines"), machine.id, report)
    return machine


def _read_machine(place: Place) -> Machine:
    _check_keys(place)
    id = read_checked(require_key(place, "id"), "machine name", "the machine's name", limits.check_machine_name)
    fields = read_context(place.part("context"))
    events = read_events(place.part("events"))
    tree = Tree(id, place.value)
    scope = Scope(tree, tree.top, tuple(list_embedded(place.value)))
    require_key(place, "states")
    root, states = _read_states(place, scope)
    steps, output = place.part("history").whole(0, limits.MAX_HISTORY), place.part("output")
    approval = read_approval(place.part("approval"))
    return Machine(
        id=id,
        description=place.part("description").text() or "",
        start=root.start or Start((), (), place.path),
        history=limits.DEFAULT_HISTORY if steps is None else steps,
        fields=fields,
        events=events,
        states={state.name: state for state in states},
        root=root.name if root in states else None,
        output=None if output.broken else read_value(output),
        errors=_read_errors(place.part("errors")),
        limits=read_queues(place.part("queues")),
        index=read_index(place.part("index"), fields),
        approval=approval,
        approvers=read_approvers(place.part("approvers"), approval),
        accepts=read_accepts(place.part("accepts"), scope),
        brings=scope.brings,
        properties=read_properties(place.part("properties"), fields, [state.name for state in states]),
    )


def _read_states(place: Place, scope: Scope) -> tuple[State, list[State]]:
    """Read the machine as a state, where it behaves like one, and all states in document order."""
    root = read_root(place, scope)
    inside = place.part("states")
    states = [] if _refuse_too_many(scope.tree, inside) else list(read_states(inside, scope))
    behaves = scope.source.kind == "parallel" or any(place.value.get(key) for key in MACHINE_KEYS if key != "type")
    has_root = behaves or scope.numbers.top_is_target
    top = root.name if has_root else None
    states = [root, *states] if has_root else states
    numbered = [
        replace(state, index=index, parent=None if state.root else state.parent or top)
        for index, state in enumerate(states, start=1)
    ]
    return numbered[0] if has_root else root, numbered


def _read_embedded(place: Place, machine: str, report: Report) -> None:
    """Check embedded machines as the machines they will be published as."""
    if not place.is_object("an object of definitions by name"):
        return
    for name, below in place.items():
        if not below.is_object("a definition"):
            continue
        inner = Report()
        inner.document = below.value | {"id": f"{machine}.{name}"}
        found = _read_document(inner.document, inner)
        report.absorb(inner, below.path)
        report.embedded += inner.embedded
        if found is not None:
            report.embedded.append((found, inner))


def _check_embedded(document: Any, report: Report) -> None:
    """Report embedded machines whose full names collide: ``a.b`` is ``b`` inside ``a``, and a machine of that name."""
    taken: set[str] = set()
    for path, _, full in list_embedded_names(document):
        if full in taken:
            hint = "rename one of them: a dot also stands between a machine and one inside it"
            report.add("SB115", path, f"two of the machines are published as {quote(full)}", hint)
        taken.add(full)
    if len(taken) > limits.MAX_EMBEDDED:
        message = f"{len(taken)} machines come along; at most {limits.MAX_EMBEDDED} may"
        report.add("SB111", ("machines",), message, "publish some of them by themselves")


def _check_keys(place: Place) -> None:
    place.refuse_unknown(list_keys("machine"), _HINTS)
    kind = place.part("type")
    if kind.text("a type") is not None and kind.value not in ("compound", "parallel"):
        kind.error("SB104", f"no type of machine {quote(kind.value)}", '"parallel", or leave it out')
    if "version" in place:
        place.at("version").warn("SB205", '"version" has no effect: publishing numbers the versions')
    place.part("partitions").whole(1, limits.MAX_PARTITIONS)
    read_retention(place.part("retain"))
    read_schedules(place.part("schedules"))


def _refuse_too_many(tree: Tree, place: Place) -> bool:
    if len(tree.branches) > limits.MAX_STATES:
        place.error("SB111", f"{len(tree.branches)} states; at most {limits.MAX_STATES} are allowed")
        return True
    return False


def _read_errors(place: Place) -> str:
    """Read what a failing action does; empty where the definition does not say."""
    found = place.text("refuse or raise")
    if found is not None and found not in _ERRORS:
        place.error("SB104", f"no way with errors {quote(found)}", '"refuse" or "raise"')
        return ""
    return found or ""


def list_embedded(definition: object) -> dict[str, Any]:
    """List the embedded definitions by their short names, unchanged."""
    found = definition.get("machines") if isinstance(definition, dict) else None
    return found if isinstance(found, dict) else {}


def list_embedded_names(definition: object, path: Path = ()) -> Iterator[tuple[Path, str, str]]:
    """List path, short name and full name of every embedded machine, at any depth."""
    id = definition.get("id") if isinstance(definition, dict) else None
    for name, inner in list_embedded(definition).items() if isinstance(id, str) else ():
        if isinstance(inner, dict):
            below = (*path, "machines", name)
            yield below, name, f"{id}.{name}"
            yield from list_embedded_names(inner | {"id": f"{id}.{name}"}, below)


def find_embedded(definition: object) -> dict[str, dict[str, Any]]:
    """Return all embedded machines by full name (``<id>.<name>``), with those ids, in publish order.

    A machine inside an embedded one comes before it. Publish each of them without its own embedded machines: those are
    all in the result.
    """
    id = definition.get("id") if isinstance(definition, dict) else None
    if not isinstance(id, str):
        return {}
    result: dict[str, dict[str, Any]] = {}
    for name, inner in list_embedded(definition).items():
        if isinstance(inner, dict):
            named = inner | {"id": f"{id}.{name}"}
            result |= find_embedded(named)
            result[named["id"]] = named
    return result
