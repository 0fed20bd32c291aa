"""Property tests with Hypothesis: payloads made by the declared types, and runs that hold invariants at each step.

Hypothesis is not a part of ``signalbox[test]``: ``pip install hypothesis``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from machines.conf.extras import MissingExtra
from machines.engine import Instance, NotAllowed, Refused
from machines.engine.definitions import CompiledDefinition, FieldOutline, Outline, outline
from machines.engine.errors import BadPayload

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:
    raise MissingExtra("property tests need hypothesis: pip install hypothesis") from error

from .kit import Signalbox

MOST_TEXT, MOST_ITEMS, MOST_STEPS = 20, 3, 12
LARGEST = 2**53 - 1
DELAYS = ("1s", "1m", "1h", "1d", "30d")
Check = Callable[[Instance], Any]

_TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=MOST_TEXT)
_NUMBERS = st.integers(-100, 100) | st.integers(-LARGEST, LARGEST)
_VALUES: dict[str, SearchStrategy[Any]] = {
    "string": _TEXTS,
    "integer": _NUMBERS,
    "number": _NUMBERS | st.floats(-1e9, 1e9, allow_nan=False),
    "boolean": st.booleans(),
    "null": st.none(),
}
_VALUES["array"] = st.lists(st.one_of(*_VALUES.values()), max_size=MOST_ITEMS)
_VALUES["object"] = st.dictionaries(_TEXTS.filter(bool), _TEXTS, max_size=MOST_ITEMS)


def strategies(
    definition: Mapping[str, Any] | CompiledDefinition | Outline,
) -> SearchStrategy[tuple[str, dict[str, Any]]]:
    """Return a strategy of ``(event, payload)`` for a machine: every event that a state listens for, with payloads of
    the declared types; required fields are always there. Raises DefinitionError, and ValueError for a machine that
    listens for no event."""
    found = _read_outline(definition)
    events = {event.name: event for state in found.states for event in found.events_of(state.name)}
    if not events:
        raise ValueError(f"the machine {found.id!r} listens for no event")
    return st.one_of(
        *(st.tuples(st.just(name), _make_payloads(event.fields or ())) for name, event in sorted(events.items()))
    )


def runs(
    definition: Mapping[str, Any] | CompiledDefinition | Outline, most: int = MOST_STEPS
) -> SearchStrategy[list[Any]]:
    """Return a strategy of runs for ``check_run``: lists of ``(event, payload)``, and of texts for time that passes.
    They shrink to the shortest with the simplest values."""
    step: SearchStrategy[Any] = strategies(definition) | st.sampled_from(DELAYS)
    return st.lists(step, max_size=most)


def check_run(
    signalbox: Signalbox,
    machine: str,
    run: list[Any],
    invariants: Mapping[str, Check],
    data: Mapping[str, Any] | None = None,
) -> Instance:
    """Create an instance, do a run to it, and check every invariant after each step; return the instance.

    ``invariants``: a sentence -> a function of the instance that returns whether it holds. Events that are refused
    change nothing, and are passed over. Raises AssertionError with the sentence, the step and the history.
    """
    __tracebackhide__ = True
    id = signalbox.engine.new_id()
    signalbox.create(machine, id, data)
    _require(signalbox, machine, id, invariants, "at the start")
    for number, step in enumerate(run, 1):
        try:
            if isinstance(step, str):
                signalbox.advance(step)
            else:
                signalbox.fire(machine, id, *step)
                signalbox.advance(0)
        except (Refused, NotAllowed, BadPayload):
            continue
        _require(signalbox, machine, id, invariants, f"after step {number}, {step!r}")
    return signalbox.get(machine, id)


def _require(signalbox: Signalbox, machine: str, id: str, invariants: Mapping[str, Check], when: str) -> None:
    __tracebackhide__ = True
    instance = signalbox.get(machine, id)
    for sentence, holds in invariants.items():
        if not holds(instance):
            raise AssertionError(f"{sentence}: does not hold {when}\n{signalbox.describe(machine, id)}")


def _read_outline(definition: Mapping[str, Any] | CompiledDefinition | Outline) -> Outline:
    if isinstance(definition, Outline):
        return definition
    return definition.outline if isinstance(definition, CompiledDefinition) else outline(definition)


def _make_payloads(fields: tuple[FieldOutline, ...]) -> SearchStrategy[dict[str, Any]]:
    needed = {field.name: _make_values(field) for field in fields if field.required}
    others = {field.name: _make_values(field) for field in fields if not field.required}
    return st.fixed_dictionaries(needed, optional=others)


def _make_values(field: FieldOutline) -> SearchStrategy[Any]:
    found = st.one_of(*(_VALUES.get(kind, st.one_of(*_VALUES.values())) for kind in field.types))
    return found if field.initial is None else st.just(field.initial) | found
