"""What a program of any release does with the engine, as JSON on standard output. Run with that release importable.

python contract.py URL PREFIX
"""

import json
import sys

from machines.engine import Engine, Explanation, Fire, Instance, Step, errors

NOW = 1_700_000_000_000
DEFINITION = {
    "id": "order",
    "initial": "New",
    "context": {"n": 0, "who": "", "due": 1},
    "states": {
        "New": {
            "on": {
                "add": {"guard": "n < 3", "actions": {"set": {"n": "n + event.by"}}},
                "pay": {"target": "Paid", "actions": [{"emit": {"type": "paid", "data": {"n": "n"}}}]},
                "wait": "Waiting",
            },
        },
        "Waiting": {"after": {"5000": "Paid"}, "on": {"back": "New"}},
        "Paid": {"invoke": {"src": "ship", "onDone": "Done", "retry": {"attempts": 2}}},
        "Done": {"type": "final"},
    },
}

FORMER = {"version": "revision", "definition": "version"} if "definition" in Instance.__dataclass_fields__ else {}
"""Names in the records of a release in which ``version`` was the revision -> their names now."""
LEFT_OUT = ("token", "_", "handled")
"""Names of answers that are not compared; ``handled`` is a place of jobs that a later release added."""


def attempt(work):
    """The result of a call as plain data, or its error."""
    try:
        return plain(work())
    except errors.SignalboxError as error:
        return {"error": type(error).__name__, "code": error.code}


def plain(value):
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, errors.SignalboxError):
        return {"error": type(value).__name__, "code": value.code}
    names = FORMER if isinstance(value, Instance | Step | Explanation) else {}
    value = value.as_dict() if hasattr(value, "as_dict") else value
    if isinstance(value, dict):
        return {names.get(name, name): plain(item) for name, item in value.items() if name not in LEFT_OUT}
    return value if isinstance(value, str | int | float | bool | None) else repr(type(value))


def steps(engine):
    """Yield (name, result) of each call."""
    run = {"now": NOW}
    yield "publish", attempt(lambda: engine.publish(DEFINITION).version)
    for id in "abcdef":
        yield f"create {id}", attempt(lambda id=id: engine.create("order", id, {"who": id}, key="once", **run))
    yield "create again", attempt(lambda: engine.create("order", "a", {"who": "a"}, key="once", **run))
    yield "exists", attempt(lambda: engine.create("order", "a", **run))
    yield "fire", attempt(lambda: engine.fire("order", "a", "add", {"by": 3}, key="k", actor="ann", reason="r", **run))
    yield "fire again", attempt(lambda: engine.fire("order", "a", "add", {"by": 3}, key="k", **run))
    yield "refused", attempt(lambda: engine.fire("order", "a", "add", {"by": 3}, **run))
    yield "conflict", attempt(lambda: engine.fire("order", "a", "pay", expect=7, **run))
    yield "unknown event", attempt(lambda: engine.fire("order", "a", "nothing", **run))
    yield "unknown instance", attempt(lambda: engine.fire("order", "nobody", "pay", **run))
    yield "explain", attempt(lambda: engine.explain("order", "b", "add", {"by": 1}, **run))
    yield "many", attempt(lambda: engine.fire_many([Fire("order", id, "pay", now=NOW) for id in "bcd"]))
    yield "wait", attempt(lambda: engine.fire("order", "e", "wait", **run))
    yield "tick", attempt(lambda: engine.tick("order", now=NOW + 6000))
    jobs = engine.take("order", "ship", "w", count=10, now=NOW + 6000)
    yield "take", len(jobs)
    yield "extend", attempt(lambda: engine.extend(jobs, 60_000, now=NOW + 6000))
    yield "complete", attempt(lambda: engine.complete(jobs[0], now=NOW + 7000))
    yield "fail", attempt(lambda: engine.fail(jobs[1], "no", retry=False, now=NOW + 7000))
    yield "lost", attempt(lambda: engine.complete(jobs[0], now=NOW + 7000))
    yield "queues", attempt(lambda: engine.queues("order"))
    yield "force", attempt(lambda: engine.force("order", "f", "Waiting", actor="ann", reason="r", data={"n": 2}, **run))
    yield "suspend", attempt(lambda: engine.suspend("order", "f", actor="ann", reason="r", **run))
    yield "suspended", attempt(lambda: engine.fire("order", "f", "back", **run))
    yield "resume", attempt(lambda: engine.resume("order", "f", actor="ann", reason="r", **run))
    yield "reset", attempt(lambda: engine.reset("order", "f", actor="ann", reason="r", **run))
    yield "delete", attempt(lambda: engine.delete("order", "f"))
    yield "get", attempt(lambda: [engine.get("order", id) for id in "abcde"])
    yield "history", attempt(lambda: engine.history("order", "a"))
    yield "find", attempt(lambda: [found.id for found in engine.find("order", state="Paid")])
    yield "counts", attempt(lambda: engine.counts("order"))
    yield "live", attempt(lambda: engine.live("order", now=NOW + 8000))
    yield "enqueue", attempt(lambda: bool(engine.enqueue("order", "extra", {"a": 1})))
    yield "redrive", attempt(lambda: engine.redrive("order", "ship", actor="ann", reason="r"))
    yield "mend", attempt(lambda: engine.mend("order", now=NOW + 8000))
    yield "machines", attempt(engine.machines)
    yield "definition", attempt(lambda: engine.definition("order"))


if __name__ == "__main__":
    print(json.dumps(dict(steps(Engine.from_url(sys.argv[1], prefix=sys.argv[2])))))  # noqa: T201
