"""Reading a definition takes work in proportion to its size: calls are counted, not time."""

import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from machines.catalog import submissions
from machines.engine import expressions
from machines.engine.definitions import check
from tests.cases import for_each

GROWTH = 2.6  # times the calls for twice the size; a square would be 4


def calls_of(run: Callable[[], Any]) -> int:
    """How many functions, built-in ones included, this thread calls."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def machine(transitions: list[dict]) -> dict:
    states = {"S0": {"on": {"e": transitions}}, "S1": {"type": "final"}}
    return {"id": "m", "initial": "S0", "context": {"a": 0}, "states": states}


def one_long_guard(size: int) -> Callable[[], Any]:
    guard = " and ".join(f"a > {number}" for number in range(20 * size))
    return lambda: check(machine([{"target": "S1", "guard": guard}]))


def guards_on_several_lines(size: int) -> Callable[[], Any]:
    guard = "(" + " and\n".join(["a > 1"] * 20 * size) + ")  # all"
    return lambda: check(machine([{"target": "S1", "guard": guard}]))


def many_guards(size: int) -> Callable[[], Any]:
    return lambda: check(machine([{"target": "S1", "guard": f"a > {number}"} for number in range(50 * size)]))


def regions_that_are_all_targets(size: int) -> Callable[[], Any]:
    names = [f"a{number}" for number in range(10 * size)]
    regions = {f"P{name}": {"initial": name, "states": {name: {}}} for name in names}
    regions["Pa0"]["states"]["a0"]["on"] = {"e": {"target": names}}
    return lambda: check({"id": "m", "type": "parallel", "states": regions})


def scxml_states(size: int) -> Callable[[], Any]:
    states = (
        f'<state id="s{number}"><transition event="e" cond="1 == {number}" target="s0"/></state>'
        for number in range(150 * size)
    )
    text = f'<scxml xmlns="http://www.w3.org/2005/07/scxml" initial="s0">{"".join(states)}</scxml>'
    return lambda: submissions.read(text, format="scxml")


@for_each("shape", [one_long_guard, guards_on_several_lines, many_guards, regions_that_are_all_targets, scxml_states])
def test_twice_the_size_takes_about_twice_the_work(shape):
    shape(1)()  # what is read once in a process
    small, large = calls_of(shape(4)), calls_of(shape(8))
    assert large < small * GROWTH


def test_expressions_are_read_by_many_threads_at_a_time():
    """CPython 3.11 fails with a SystemError where two threads make a syntax tree at a time."""
    text = " and ".join(f"a > {number}" for number in range(150))
    wrong: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(5):
                assert not expressions.read(text, guard=True).problems
        except BaseException as error:
            wrong.append(error)

    def give_way(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)  # as a finalizer may: amid a tree, another thread goes on

    thresholds = gc.get_threshold()
    gc.set_threshold(20)
    gc.callbacks.append(give_way)
    try:
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(give_way)
        gc.set_threshold(*thresholds)
    assert wrong == []
