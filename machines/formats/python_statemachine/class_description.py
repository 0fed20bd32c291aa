"""Describe a class of python-statemachine as JSON: run as a program of its own, in a process of its own.

    python class_description.py module:Class

It imports the module, so it runs that module's code. The description is the last line of the output. It needs nothing
but the library, so that any interpreter that has the library can run it.
"""

import importlib
import json
import os
import sys
from contextlib import redirect_stdout


def name_of(function):
    """Return the name of a callback. A lambda is named after its line."""
    if isinstance(function, str):
        return function
    function = getattr(function, "fget", None) or function
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    return f"lambda_{code.co_firstlineno}" if name == "<lambda>" and code is not None else name


def callbacks(owner, machine):
    """Return callbacks by group: each name, and whether it must return true or false.

    Callbacks found by convention are included only if the class has them.
    """
    found = {}
    for spec in getattr(owner, "_specs", ()):
        name = name_of(spec.func)
        if getattr(spec, "is_convention", False) and not hasattr(machine, name):
            continue
        wanted = getattr(spec, "expected_value", None) is not False
        rows = found.setdefault(spec.group.name, [])
        if [name, wanted] not in rows:
            rows.append([name, wanted])
    return found


def history_of(state):
    kind = getattr(state, "type", "shallow") if getattr(state, "is_history", False) else ""
    return str(getattr(kind, "value", kind))


def describe(machine):
    order, states = [], []

    def visit(state, parent):
        number = len(order)
        order.append(state)
        groups = callbacks(state, machine)
        states.append(
            {
                "id": str(state.id),
                "name": str(state.name),
                "parent": parent,
                "initial": bool(state.initial),
                "final": bool(state.final),
                "parallel": bool(getattr(state, "parallel", False)),
                "history": history_of(state),
                "callbacks": groups,
            }
        )
        inner = getattr(state, "states", None) or []
        for child in [*inner, *(getattr(state, "history", None) or [])]:
            if not any(child is known for known in order):
                visit(child, number)

    for state in machine.states:
        visit(state, None)
    numbers = {id(state): number for number, state in enumerate(order)}
    transitions = []
    for number, state in enumerate(order):
        for transition in state.transitions:
            targets = getattr(transition, "targets", None) or [transition.target]
            transitions.append(
                {
                    "source": number,
                    "targets": [numbers[id(target)] for target in targets if id(target) in numbers],
                    "event": str(transition.event or ""),
                    "initial": bool(getattr(transition, "initial", False)),
                    "internal": bool(transition.internal),
                    "callbacks": callbacks(transition, machine),
                }
            )
    return {
        "name": machine.__name__,
        "doc": (machine.__doc__ or "").strip(),
        "states": states,
        "transitions": transitions,
    }


def find(target):
    module, _, name = target.partition(":")
    if not module or not name:
        raise ValueError("name a class as module:Class")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not isinstance(found, type) or not hasattr(found, "states"):
        raise TypeError(f"{target} is no class of a state machine")
    return found


def main(target):
    sys.path.insert(0, os.getcwd())
    try:
        with redirect_stdout(sys.stderr):
            answer = describe(find(target))
    except BaseException as error:  # whatever the module does, the caller gets an answer
        answer = {"error": f"{type(error).__name__}: {error}"[:500]}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
