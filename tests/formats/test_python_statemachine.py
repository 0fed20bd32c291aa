"""Classes of python-statemachine, imported by the real library in a process of its own."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from machines.engine.definitions import check
from machines.engine.errors import DefinitionError
from machines.formats import READERS, guess, load
from machines.formats.python_statemachine import FORMAT, run

pytestmark = pytest.mark.pure

MODULE = '''
from statemachine import HistoryState, State, StateChart, StateMachine

print("imported")


class Order(StateMachine):
    """An order."""

    waiting = State(initial=True)
    packing = State("In the packing room")
    sent = State(final=True)

    pay = waiting.to(packing, cond="is_paid and total > 3", unless="is_blocked") | waiting.to.itself(on="remind")
    look = packing.to.itself(internal=True, before="count")
    send = packing.to(sent, validators="has_address")

    def on_enter_packing(self): ...

    def after_send(self): ...

    @packing.exit
    def close(self): ...


class Journey(StateChart):
    class trip(State.Compound):
        packed = State(initial=True)
        gone = State()
        back = State(final=True)
        last = HistoryState(type="deep")
        leave = packed.to(gone)
        home = gone.to(back)

    class night(State.Parallel):
        class sky(State.Compound):
            dark = State(initial=True)
            light = State(final=True)
            dawn = dark.to(light, cond="is_morning")

        class guard(State.Compound):
            awake = State(initial=True, invoke="watch")
            asleep = State(final=True)
            tire = awake.to(asleep, cond=lambda: True)

    end = State(final=True)
    sleep = trip.to(night)
    wake = night.to(trip.last)
    done_state_trip = trip.to(end)


class Nothing:
    states = 1


broken = Order(None) if False else 5
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "shop_machines.py").write_text(MODULE)
    (tmp_path / "loud.py").write_text("raise SystemExit('no')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_conditions_and_callbacks_by_name(folder):
    definition, findings = run("shop_machines:Order")
    assert [str(found) for found in (*findings, *check(definition)) if found.is_error] == []
    assert definition == {
        "id": "Order",
        "description": "An order.",
        "context": {"is_paid": None, "total": None, "is_blocked": False, "has_address": False},
        "initial": "waiting",
        "states": {
            "waiting": {
                "on": {
                    "pay": [
                        {"target": "packing", "guard": "(is_paid and total > 3) and not is_blocked"},
                        {"target": "waiting", "reenter": True, "actions": {"emit": {"type": "remind"}}},
                    ]
                }
            },
            "packing": {
                "description": "In the packing room",
                "entry": {"emit": {"type": "on_enter_packing"}},
                "exit": {"emit": {"type": "close"}},
                "on": {
                    "look": {"actions": {"emit": {"type": "count"}}},
                    "send": {
                        "target": "sent",
                        "guard": "has_address",
                        "actions": {"emit": {"type": "after_send"}},
                    },
                },
            },
            "sent": {"type": "final"},
        },
    }


def test_hierarchy_regions_and_histories(folder):
    definition, findings = run("shop_machines:Journey")
    assert [str(found) for found in (*findings, *check(definition)) if found.is_error] == []
    trip, night = definition["states"]["trip"], definition["states"]["night"]
    assert trip["initial"] == "packed"
    assert trip["states"]["last"] == {"type": "history", "history": "deep"}
    assert trip["on"] == {"sleep": "night"}
    assert trip["onDone"] == "end"
    assert night["type"] == "parallel"
    assert night["on"] == {"wake": "last"}
    assert night["states"]["guard"]["states"]["awake"]["invoke"] == {"src": "watch"}
    assert night["states"]["sky"]["states"]["dark"]["on"]["dawn"] == {"target": "light", "guard": "is_morning"}
    assert any(name.startswith("lambda_") for name in definition["context"])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("shop_machines", "name a class as module:Class"),
        ("shop_machines:Order.nothing", "AttributeError"),
        ("shop_machines:broken", "is no class of a state machine"),
        ("nowhere:Order", "ModuleNotFoundError"),
        ("loud:Order", "SystemExit"),
        ("shop_machines:Nothing", "TypeError"),
    ],
)
def test_what_cannot_be_imported_is_said(folder, target, message):
    definition, findings = run(target)
    assert definition is None
    assert findings[0].code == "SB136"
    assert message in findings[0].message


def test_an_interpreter_that_is_not_there(folder):
    assert run("shop_machines:Order", python=str(folder / "no-python"))[1][0].code == "SB136"


def test_only_the_command_reads_classes_and_only_when_told(folder):
    assert FORMAT not in READERS
    assert guess(MODULE, "shop_machines.py") != FORMAT
    with pytest.raises(DefinitionError, match="--run-code"):
        load("shop_machines:Order", FORMAT)
    for wrong in (["--format", FORMAT], ["--run-code"]):
        with pytest.raises(CommandError, match="run-code"):
            call_command("machine", "import", "shop_machines:Order", *wrong)
    out = io.StringIO()
    call_command(
        *("machine", "import", "shop_machines:Order", "--format", FORMAT, "--run-code"),
        stdout=out,
        stderr=io.StringIO(),
    )
    assert '"id": "Order"' in out.getvalue()
    with pytest.raises(CommandError, match="nothing was read"):
        call_command("machine", "import", "loud:Order", "--format", FORMAT, "--run-code", stderr=io.StringIO())
