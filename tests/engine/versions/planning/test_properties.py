"""Properties of plans and comparisons, over pairs of random definitions."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import MigrationPlan, PlanError
from machines.engine.versions.comparison.differ import compare_versions
from machines.engine.versions.comparison.pairs import strip
from machines.engine.versions.planning.planner import check_plan, make_plan
from tests.engine.definitions.strategies import charts, machines

from ..content import ORDER, read

pairs = st.tuples(charts(), charts()) | st.tuples(machines(), machines())


@settings(max_examples=60)
@given(pairs, st.data())
def test_a_plan_is_restored_and_inverted(both, data):
    old, new = read(1, both[0]), read(2, both[1])
    leaves = st.sampled_from(new.outline.leaves) | st.none()
    states = data.draw(st.dictionaries(st.sampled_from(old.outline.leaves), leaves, max_size=3))
    plan, errors = _plan(old, new, states)
    assert errors <= {"SB603"}  # configurations that exclude each other
    source = plan.sources[0]
    assert set(source.states) | set(source.unmapped_states) == set(old.outline.leaves)
    assert not set(source.states) & set(source.unmapped_states)
    restored = MigrationPlan.from_dict(json.loads(json.dumps(plan.as_dict())))
    assert restored == plan
    assert restored.program() == plan.program()
    back = plan.inverse()
    assert back.inverse().sources == plan.sources
    assert back.inverse().program() == plan.program()
    assert MigrationPlan.from_dict(json.loads(json.dumps(back.as_dict()))) == back
    codes = {finding.code for one in (restored, back) for finding in check_plan(one, {1: old, 2: new})}
    assert codes <= {"SB603", "SB607", "SB608", "SB609"}


SAMPLE = make_plan("order", read(2, ORDER), [read(1, ORDER)], states={"Held": "Paid"}, data={"total": "total + 1"})


ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.text(max_size=2), max_size=2)


@settings(max_examples=200)
@given(st.data())
def test_a_spoiled_plan_is_refused_or_still_a_plan(data):
    found = json.loads(json.dumps(SAMPLE.as_dict()))
    del found["id"]
    at = found
    while True:
        key = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(ANYTHING | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2))
    try:
        plan = MigrationPlan.from_dict(found)
    except PlanError:
        return
    assert MigrationPlan.from_dict(plan.as_dict()) == plan
    json.dumps(plan.programs())
    check_plan(plan, {1: read(1, ORDER), 2: read(2, ORDER)})


@settings(max_examples=60)
@given(pairs)
def test_a_comparison_finds_every_difference(both):
    old, new = read(1, both[0]), read(2, both[1])
    found = compare_versions("m", old, new)
    if strip({**old.program, "states": []}) != strip({**new.program, "states": []}) or _by_name(old) != _by_name(new):
        assert found.changes
    assert not any("that is not listed" in change.reason for change in found.changes)
    assert not compare_versions("m", old, read(2, both[0])).changes
    names = {state.name for state in old.outline.states}
    assert set(found.old_parts["states"]) <= names
    json.dumps(found.as_dict())


@settings(max_examples=60)
@given(charts() | machines(), st.data())
def test_a_changed_definition_differs_where_it_was_changed(definition, data):
    old = read(1, definition)
    name = data.draw(st.sampled_from(old.outline.leaves))
    changed = json.loads(json.dumps(definition))
    state = _find(changed, name)
    state["tags"] = [*state.get("tags", []), "changed"]
    (found,) = compare_versions("m", old, read(2, changed)).changes
    assert (found.kind, found.verb, found.verdict) == ("state", "changed", "compatible")
    assert found.new_part == ("states", name)


def _plan(old, new, states):
    """Return a plan as far as it could be made, and the codes of its errors."""
    try:
        return make_plan("m", new, [old], states=states), set()
    except PlanError as error:
        return error.plan, {finding.code for finding in error.findings if finding.is_error}


def _by_name(version):
    """Return the parts of the program that do not depend on the order of states and transitions."""
    return {name: (state.get("kind"), state["final"], state.get("sla")) for name, state in version.programs.items()}


def _find(body, name):
    for key, state in body.get("states", {}).items():
        if key == name:
            return state
        found = _find(state, name)
        if found is not None:
            return found
    return None
