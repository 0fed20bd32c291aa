"""Models that viewflow.fsm, ``transitions`` and python-statemachine move are attached like those of django-fsm-2."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db import models, transaction
from statemachine import State, StateMachine
from transitions import Machine
from transitions.extensions import HierarchicalMachine
from viewflow import fsm

from machines.integrations.attached import NotAttachable, attach, registry
from machines.integrations.attached.calls import call_method, find_refusals
from machines.integrations.attached.definition import build_definition
from machines.integrations.attached.reconcile import Reconcile
from machines.people.mirrors import MethodFailed, MethodRefused


@pytest.fixture
def staff(mirrored):
    return get_user_model().objects.create_user("sue", is_staff=True)


@pytest.fixture
def flows(mirrored):
    from .store import flows

    return flows


def targets(definition, state) -> dict[str, list[str | None]]:
    """Event -> its targets from a state."""
    found = definition["states"][state].get("on", {})
    listed = {event: one if isinstance(one, list) else [one] for event, one in found.items()}
    return {event: [each.get("target") for each in some] for event, some in listed.items()}


def steps_of(engine, attachment, row) -> list[tuple[str, str, str]]:
    """Event, actor and state of each step, the first one first."""
    found = engine.history(attachment.machine, str(row.pk))
    return [(step.event, step.actor, step.configuration[0]) for step in reversed(found)]


def test_a_flow_of_viewflow_is_attached_with_one_line(engine, flows, staff):
    attached = attach(flows.Report, "stage", machine=flows.ReportFlow)
    made = build_definition(attached)
    assert targets(made, "draft") == {"approve": ["approved"], "hide": ["hidden"]}
    assert made["states"]["draft"]["on"]["approve"]["description"].startswith("if has_text; permission <lambda>")
    assert made["events"]["approve"] == {"description": "Approve it"}
    assert made["states"]["approved"]["description"] == "Approved by the board"
    report = flows.Report.objects.create()
    with pytest.raises(ValueError, match="away"):
        flows.ReportFlow(report).approve(breaks=True)
    flows.ReportFlow(report).approve(by=staff)
    flows.ReportFlow(report).hide()
    flows.ReportFlow(report).remind()
    assert steps_of(engine, attached, report) == [
        ("(create)", "row", "draft"), ("approve", "sue", "approved"), ("hide", "row", "hidden"),
        ("remind", "row", "hidden"),
    ]  # fmt: skip


def test_a_flow_of_viewflow_is_called_under_its_own_permission(engine, flows, staff):
    attached = attach(flows.Report, "stage", machine=flows.ReportFlow.stage)
    report = flows.Report.objects.create(text="")
    anyone = get_user_model().objects.create_user("joe")
    id = str(report.pk)
    assert find_refusals(attached.machine, id, ["approve", "hide", "remind"], anyone) == {
        "approve": "the permission <lambda> is missing", "hide": "",
        "remind": "the row is in draft, and remind starts from hidden",
    }  # fmt: skip
    with pytest.raises(MethodRefused, match="has_text is not met"):
        call_method(attached.machine, id, "approve", user=staff)
    flows.Report.objects.update(text="more")
    with pytest.raises(MethodFailed, match="the board is away"):
        call_method(attached.machine, id, "approve", {"breaks": True}, user=staff)
    assert call_method(attached.machine, id, "approve", user=staff, reason="meeting 7").state == "approved"
    step = engine.history(attached.machine, id)[0]
    assert (step.actor, step.reason) == ("sue", "meeting 7")


def test_rows_that_make_a_machine_of_transitions_are_attached_with_two_lines(engine, flows, staff):
    attached = attach(flows.Lamp, "state", machine="machine")
    made = build_definition(attached)
    assert targets(made, "on") == {"switch": ["off"], "drop": ["broken"], "wipe": [None]}
    assert made["states"]["off"]["on"]["switch"]["description"] == "if has_power"
    lamp = flows.Lamp.objects.create()
    with pytest.raises(ValueError, match="held"):
        lamp.drop(careful=True)
    lamp.save()
    lamp.switch(by=staff)
    lamp.save()
    with transaction.atomic():
        lamp.drop()
        lamp.save()
        transaction.set_rollback(True)
    assert steps_of(engine, attached, lamp) == [("(create)", "row", "off"), ("switch", "sue", "on")]
    assert call_method(attached.machine, str(lamp.pk), "switch", user=staff).state == "off"
    flows.Lamp.objects.update(power=False)
    with pytest.raises(MethodRefused, match="has_power is not met"):
        call_method(attached.machine, str(lamp.pk), "switch", user=staff)


def test_one_machine_of_transitions_for_all_rows(engine, flows, staff):
    attached = attach(flows.Door, "state", machine=flows.doors)
    door = flows.Door.objects.create()
    flows.doors.add_model(door, initial=door.state)
    door.close()
    door.save()
    door.to_open()
    door.save()
    assert steps_of(engine, attached, door) == [
        ("(create)", "row", "open"), ("close", "row", "closed"), ("(force)", "row", "open"),
    ]  # fmt: skip
    assert engine.history(attached.machine, str(door.pk))[0].reason == "to_open"
    assert call_method(attached.machine, str(door.pk), "close", user=staff).state == "closed"


def test_a_class_of_python_statemachine_is_attached_with_one_line(engine, flows, staff):
    attached = attach(flows.Parcel, "state", machine=flows.ParcelMachine)
    made = build_definition(attached)
    assert targets(made, "waiting") == {"send_off": ["on the way"]}
    assert made["states"]["waiting"]["on"]["send_off"]["description"] == "if has_address"
    parcel = flows.Parcel.objects.create()
    machine = flows.ParcelMachine(parcel)
    machine.send_off(by=staff)
    parcel.save()
    with pytest.raises(ValueError, match="there it is"):
        machine.lose(found=True)
    parcel.save()
    assert steps_of(engine, attached, parcel) == [("(create)", "row", "waiting"), ("send_off", "sue", "on the way")]
    assert call_method(attached.machine, str(parcel.pk), "lose", user=staff).state == "lost"
    other = flows.Parcel.objects.create(address="")
    with pytest.raises(MethodRefused, match="has_address is not met"):
        call_method(attached.machine, str(other.pk), "send_off", user=staff)


def test_update_and_sql_are_found_whatever_the_library(engine, flows):
    attached = attach(flows.Parcel, "state", machine=flows.ParcelMachine)
    rows = [flows.Parcel.objects.create() for _ in range(3)]
    flows.Parcel.objects.filter(pk=rows[0].pk).update(state="lost")
    flows.Parcel.objects.bulk_create([flows.Parcel(state="on the way")])
    assert Reconcile(engine, attached).run().mended == 2
    table = {str(pk): state for pk, state in flows.Parcel.objects.values_list("pk", "state")}
    assert {one.id: one.state for one in engine.find(attached.machine)} == table


class Nested(StateMachine):
    class outer(State.Compound):
        inner = State(initial=True)
        other = State(final=True)
        go = inner.to(other)


class Nameless(StateMachine):
    first = State(initial=True)
    last = State(final=True)
    move = first.to(last)
    first.to(last)


class TwoStates:
    stage = fsm.State(["a", "b"])
    phase = fsm.State(["a", "b"])


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (HierarchicalMachine(model=None, states=["a", {"name": "b", "children": ["c"]}], initial="a"), "nested states"),
        (Machine(model=None, states=["a"], initial="a", model_attribute="stage"), "give it model_attribute='state'"),
        (Nested, "Nested.outer has states within it"),
        (Nameless, "Nameless.first has a transition without an event"),
        (TwoStates, "several states, phase, stage: give one of them, as machine=TwoStates.phase"),
        ("motor", "no Machine of transitions in its attribute 'motor'"),
        (42, "machine=42 is none that attach knows"),
    ],
)
def test_machines_that_cannot_be_mirrored_are_refused_with_what_would_be_right(flows, machine, said):
    with pytest.raises(NotAttachable, match=said):
        attach(flows.Parcel, "state", machine=machine)
    assert len(registry.list_attached()) == 1


def test_a_field_that_the_model_does_not_have_is_named(flows):
    with pytest.raises(NotAttachable, match="has no field 'stage'; it has: id, state, address"):
        attach(flows.Parcel, "stage", machine=flows.ParcelMachine)
    assert isinstance(flows.Parcel._meta.get_field("state"), models.CharField)
