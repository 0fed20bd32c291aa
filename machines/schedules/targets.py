"""Checks what a schedule does against what is published: its machine, event, queue, filter and values."""

import difflib
from collections.abc import Collection, Iterator

from machines.catalog import builtin_machines
from machines.engine import Engine, arguments, errors, limits
from machines.engine.definitions import Outline, outline
from machines.engine.definitions.outline import is_match
from machines.engine.jobs.records import Enqueue, build_arguments
from machines.people.mirrors import is_mirror

from .document import Schedule
from .errors import Finding

LISTED = 8  # names of a hint


def check(engine: Engine, schedule: Schedule, *, among: Collection[str] | None = None) -> list[Finding]:
    """Find what does not fit. ``among``: the machines that a hint may name; None for all."""
    published = engine.recent_versions()
    known = [name for name in sorted(published) if among is None or name in among]
    machine = schedule.what["machine"]
    if not isinstance(machine, str) or machine not in published:
        return [Finding("what.machine", f"there is no machine {machine!r}", _suggest(machine, known))]
    if machine in builtin_machines.NAMES:
        message = f"{machine} is a machine of the product, which its own pages and services move"
        return [Finding("what.machine", message, _suggest(machine, set(known) - builtin_machines.NAMES))]
    if is_mirror(machine) and schedule.does in ("fire", "create"):
        message = f"{machine} mirrors rows of a table, which only methods of the model change"
        return [Finding("what.do", message, "fire_all, which calls the method of each row that its filter finds")]
    try:
        return [*_check_values(engine, schedule), *_check_names(engine, schedule)]
    except errors.SignalboxError as error:
        return [Finding("what", str(error))]


def _check_values(engine: Engine, schedule: Schedule) -> Iterator[Finding]:
    what, does = schedule.what, schedule.does
    try:
        if does == "enqueue":
            options = {name: what[name] for name in ("queue", "priority", "attempts") if name in what}
            build_arguments(Enqueue(what["machine"], what["src"], what.get("input"), **options))
        elif does == "create":
            arguments.check_instance(schedule.instance_id(0, "-" + "0" * 20))
            arguments.encode_fields("data", what.get("data"), limits.MAX_DATA)
        else:
            arguments.check_event(what["event"])
            arguments.encode_fields("payload", what.get("payload"), limits.MAX_PAYLOAD)
        if does == "fire":
            arguments.check_instance(what["instance"])
    except errors.SignalboxError as error:
        yield Finding("what", str(error))
    if does == "fire_all":
        yield from _check_filter(engine, schedule)


def _check_filter(engine: Engine, schedule: Schedule) -> Iterator[Finding]:
    from machines.instances.bulks.order import FILTERS, IDS, MAX_RATE

    what = schedule.what
    rate = what.get("rate", 0)
    if isinstance(rate, bool) or not isinstance(rate, int) or not 0 <= rate <= MAX_RATE:
        yield Finding("what.rate", f"{rate!r} is out of range", f"0 to {MAX_RATE} instances a second, 0 for no limit")
    if IDS in what["filter"]:
        yield Finding("what.filter", "a list of ids is no search", "a filter, or a schedule for each instance")
        return
    if unknown := sorted(set(what["filter"]) - FILTERS):
        yield Finding("what.filter", f"unknown filter {', '.join(unknown)}", ", ".join(sorted(FILTERS)))
        return
    try:
        engine.find(what["machine"], **what["filter"], limit=1)
    except (errors.BadInput, TypeError) as error:
        yield Finding("what.filter", str(error))


def check_reserved(schedule: Schedule) -> Iterator[Finding]:
    """Find handlers and queues of the product in a schedule."""
    for name in ("src", "queue") if schedule.does == "enqueue" else ():
        if builtin_machines.is_reserved(str(schedule.what.get(name, ""))):
            message = f"{schedule.what[name]!r} is a name of the product's own handlers and queues"
            yield Finding(f"what.{name}", message, "another name")


def _check_names(engine: Engine, schedule: Schedule) -> Iterator[Finding]:
    what = schedule.what
    yield from check_reserved(schedule)
    if schedule.does == "enqueue":
        yield from _check_queue(engine, schedule)
    elif schedule.does != "create":
        yield from check_event(schedule, outline(engine.definition(what["machine"])))


def check_event(schedule: Schedule, found: Outline) -> Iterator[Finding]:
    """Find an event that a version of the machine does not listen for."""
    what = schedule.what
    if schedule.does in ("enqueue", "create"):
        return
    known = _list_events(found)
    if not any(is_match(name, what["event"]) for name in known):
        named = [name for name in known if "*" not in name]
        yield Finding("what.event", f"{what['machine']} has no event {what['event']!r}", _suggest(what["event"], named))


def _list_events(found: Outline) -> set[str]:
    return {event for state in found.states for transition in state.transitions for event in transition.events}


def _check_queue(engine: Engine, schedule: Schedule) -> Iterator[Finding]:
    """Report a queue that no definition feeds, that does not exist, and that neither a worker nor a handler here
    knows."""
    from machines.worker.registry import handlers

    what = schedule.what
    machine, queue = what["machine"], what.get("queue", what["src"])
    known = {*outline(engine.definition(machine)).queues, *engine.queues(machine)}
    if queue in known or handlers.claims(machine, queue) or what["src"] in handlers:
        return
    if any(f"{machine}/{queue}" in row.queues for row in engine.workers()):
        return
    text = f"{machine} has no queue {queue!r}, and no worker has a handler of that name"
    yield Finding("what.queue" if "queue" in what else "what.src", text, _suggest(queue, sorted(known)))


def _suggest(name: object, known: Collection[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    listed = sorted(known)[:LISTED]
    return f"there are {', '.join(listed)}" + (", ..." if len(known) > LISTED else "") if listed else "there are none"
