"""`after` as SCXML: a timer to us, and to others an event that is sent and taken back."""

from __future__ import annotations

import pytest

from machines.engine import SignalboxError
from machines.engine.definitions import check, compile
from machines.formats import dump, load, read
from tests.cases import for_each
from tests.engine.builders import NOW, machine

from .builders import back

TIMERS = {
    "2s": [{"target": "b", "guard": "n > 0"}, {"actions": {"log": "n"}}],
    "n * 1000": "#timed",
    "2000": "b",
}


def test_timers_come_back_as_timers():
    state = {"entry": {"log": "n"}, "exit": {"log": "-n"}, "after": TIMERS, "on": {"x": "b"}}
    again = back(machine("timed", {"a": state, "b": {}}, context={"n": 1}))
    once, calculated, twice = TIMERS.values()
    assert again["states"]["a"] == state | {"after": {"2000": once, "n * 1000": calculated, "(2000)": twice}}
    assert [str(one) for one in check(again) if one.is_error] == []
    assert back(again) == again


def test_a_timer_of_the_machine_itself_comes_back():
    definition = machine("m", {"a": {}, "b": {}}, after={"1500": "b"})
    assert back(definition)["after"] == {"1500": "b"}


def test_nobody_can_fire_a_timer_that_was_read_back(engine):
    definition = machine("m", {"a": {"after": {"30s": "b"}, "on": {"x": "b"}}, "b": {}})
    again = back(definition)
    name = engine.publish(again).name
    (timer,) = engine.create(name, "x", now=NOW).timers
    assert (timer.state, timer.due) == ("a", NOW + 30_000)
    assert compile(again)["known"] == compile(definition)["known"] == ["x"]
    for event in ("timer.a.1", timer.event):
        with pytest.raises(SignalboxError):
            engine.fire(name, "x", event, now=NOW)


def test_other_readers_find_a_send_a_cancel_and_a_transition():
    text = dump(machine("m", {"a": {"after": {"30s": "b"}}, "b": {}}, errors="raise"), "scxml")[0]
    assert text.partition('<state id="a">')[2].partition("</state>")[0].split("\n")[1:-1] == [
        "    <onentry>",
        '      <send event="timer.a.1" id="timer.a.1" delay="30000ms" sb:after="true"/>',
        "    </onentry>",
        "    <onexit>",
        '      <cancel sendid="timer.a.1" sb:after="true"/>',
        "    </onexit>",
        '    <transition event="timer.a.1" target="b" sb:after="true"/>',
    ]
    (state, _) = load(text.replace(' sb:after="true"', ""), "scxml")["states"].values()
    assert state["entry"] == {"send": {"event": "timer.a.1", "delay": 30000, "id": "timer.a.1"}}
    assert (state["exit"], state["on"]) == ({"cancel": "timer.a.1"}, {"timer.a.1": "b"})


SEND, CANCEL = '<send event="t" id="t" delay="1s" sb:after="true"/>', '<cancel sendid="t" sb:after="true"/>'
BOTH = 'delayexpr="1" id='
WAIT = '<transition event="t" sb:after="true"/>'


@for_each(
    "inside",
    [
        f"<onentry>{SEND}</onentry>",
        WAIT,
        f"<onexit>{CANCEL}</onexit>",
        f"<onexit>{SEND}</onexit>",
        f'<onentry><if cond="true">{SEND}</if></onentry>',
        f"<onentry>{SEND.replace('1s', 'soon')}</onentry>{WAIT}",
        f"<onentry>{SEND.replace('delay', 'target')}</onentry>{WAIT}",
        f"<onentry>{SEND.replace('/>', '><param/></send>')}</onentry>{WAIT}",
        f"<onentry>{SEND.replace('id=', BOTH)}</onentry>{WAIT}",
    ],
)
def test_half_a_timer_is_an_error(inside):
    spaces = 'xmlns="http://www.w3.org/2005/07/scxml" xmlns:sb="urn:signalbox:machines"'
    found = read(f"<scxml {spaces}><state id='a'>{inside}</state></scxml>", "scxml")[1]
    assert {one.code for one in found} == {"SB144"}
