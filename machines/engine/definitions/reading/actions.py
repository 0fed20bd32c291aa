"""Reads actions: objects with one verb each, or XState's ``{"type": verb, "params": ...}``.

``if``, ``foreach`` and ``block`` hold other actions; ``raise``, ``send`` and ``cancel`` deal with events.
``read_work`` reads the options of a job, which invokes have as well.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from machines.engine import limits
from machines.engine.definitions.durations import read_delay, read_duration
from machines.engine.definitions.findings import quote
from machines.engine.definitions.model import Action, Case, Sending, Value, Verb, Work
from machines.engine.definitions.place import Check, Place, describe, read_name, require_key
from machines.engine.definitions.values import read_expression, read_guard, read_object, read_value

ReadActions = Callable[[Place], tuple[Action, ...]]


def read_if(place: Place, read: ReadActions) -> list[Action]:
    """Read an ``if``: the first case whose guard holds is run; a case without a guard is the else."""
    cases: list[Case] = []
    for one in place.one_or_many():
        hint = 'write [{"guard": "expression", "do": [...]}, {"do": [...]}]'
        if not one.is_object("a case", hint):
            continue
        one.refuse_unknown(("guard", "do"), {"then": 'write "do"', "actions": 'write "do"', "cond": 'write "guard"'})
        if cases and cases[-1].guard is None:
            one.error("SB211", "never done: the case before it has no guard")
        cases.append(Case(read_guard(one.part("guard")), read(require_key(one, "do"))))
    if place.value == []:
        place.error("SB106", "there is no case", 'write [{"guard": "expression", "do": [...]}]')
    return [Action("if", place.path, cases=tuple(cases))] if cases else []


def read_foreach(place: Place, read: ReadActions) -> list[Action]:
    """Read a ``foreach``: it runs for each element of a list; ``item`` and ``index`` are data fields."""
    hint = 'write {"foreach": {"in": "list", "item": "field", "do": [...]}}'
    if not place.is_object("an object with in, item and do", hint):
        return []
    hints = {"array": 'write "in"', "of": 'write "in"', "actions": 'write "do"', "as": 'write "item"'}
    place.refuse_unknown(("in", "item", "index", "do"), hints)
    array, item = require_key(place, "in"), require_key(place, "item")
    actions = read(require_key(place, "do"))
    name = item.text("a field's name")
    position = place.part("index").text("a field's name")
    if array.broken or not name:
        return []
    value = read_value(array)
    return [Action("foreach", place.path, name, value=value, index=position or "", cases=(Case(None, actions),))]


def read_block(place: Place, read: ReadActions) -> list[Action]:
    """Read a ``block``: a failing action ends the block only, where errors are raised."""
    return [Action("block", place.path, cases=(Case(None, read(place)),))]


SEND_KEYS = ("event", "to", "data", "delay", "id", "idlocation", "type")
_HINTS = {"type": 'write "event"', "payload": 'write "data"', "target": 'write "to"', "params": 'write "data"'}


def read_raise(place: Place) -> list[Action]:
    """Read a ``raise``; with a delay it is a send to the instance itself."""
    if isinstance(place.value, str):
        return _event_action(place, place, None)
    if not place.is_object("an event's name or an object", 'write {"raise": "event"}'):
        return []
    place.refuse_unknown(("event", "data", "delay", "id"), _HINTS)
    if "delay" in place or "id" in place:
        return _event_action(place, require_key(place, "event"), _read_sending(place))
    return _event_action(place, require_key(place, "event"), None)


def read_send(place: Place) -> list[Action]:
    """Read a ``send`` to another instance, the parent, a child, or the instance itself."""
    if isinstance(place.value, str):
        return _event_action(place, place, Sending())
    if not place.is_object("an event's name or an object", 'write {"send": {"event": "name"}}'):
        return []
    place.refuse_unknown(SEND_KEYS, _HINTS)
    return _event_action(place, require_key(place, "event"), _read_sending(place))


def read_cancel(place: Place) -> list[Action]:
    name, computed = _text_or_expression(place, "send", limits.check_send_id)
    return [Action("cancel", place.path, name, computed=computed)] if name or computed else []


def _event_action(place: Place, event: Place, sending: Sending | None) -> list[Action]:
    """Build a raise (``sending`` is None) or a send."""
    data = place.part("data")
    value = None if data.broken else read_value(data)
    keys = tuple(data.value) if isinstance(data.value, dict) else ()
    name, computed = _read_event(event)
    if not (name or computed):
        return []
    verb: Verb = "raise" if sending is None else "send"
    refuse_reserved(event, name or _constant(computed), "raised" if sending is None else "sent")
    return [Action(verb, event.path, name, value=value, keys=keys, computed=computed, sending=sending)]


def refuse_reserved(place: Place, name: str, done: str) -> None:
    """Report a name that only the engine gives to events. ``done``: what the action would do with it."""
    if limits.is_reserved_event(name):
        word = name.partition(".")[2].replace(".", "_") or "name"
        message = f"the event {quote(name)} is the engine's own and cannot be {done}"
        hint = f"write a name that does not begin with done., error. or after.: {quote(word)}"
        place.report.add("SB107", place.path, message, hint, later=True)


def _constant(value: Value | None) -> str:
    """Return the text an expression always gives, where it is a literal; the engine checks computed texts."""
    return str(value.tree[1]) if value is not None and value.tree[0] == "str" else ""


def _read_event(place: Place) -> tuple[str, Value | None]:
    """Read an event: a name, ``{"expr": ...}``, or XState's ``{"type": name}``."""
    if "type" in place:
        place.refuse_unknown(("type",), {key: 'write it under "data"' for key in place.value if key != "type"})
        place = place.at("type")
    return _text_or_expression(place, "event", limits.check_event_name)


def _text_or_expression(place: Place, what: str, check: Check) -> tuple[str, Value | None]:
    if place.broken:
        return "", None
    if isinstance(place.value, dict):
        return "", read_expression(place)
    return read_name(place, what, check), None


def _read_sending(place: Place) -> Sending:
    id, computed = _text_or_expression(place.part("id"), "send", limits.check_send_id)
    type = place.part("type")
    return Sending(
        to=_read_to(place.part("to")),
        delay=read_delay(place.part("delay")),
        id=id,
        computed=computed,
        idlocation=place.part("idlocation").text("a field's name") or "",
        type=None if type.text("an expression in quotes") is None else read_value(type),
    )


def _read_to(place: Place) -> Value | None:
    """Read a receiver: an expression that gives an address, or a machine and an expression that gives the id."""
    if place.broken:
        return None
    if not isinstance(place.value, dict):
        what = "an expression in quotes, or an object with machine and id"
        hint = 'write "\'#_parent\'" or {"machine": "name", "id": "expression"}'
        return None if place.text(what, hint) is None else read_value(place)
    place.refuse_unknown(("machine", "id"))
    id = require_key(place, "id")
    machine = read_name(require_key(place, "machine"), "machine", limits.check_machine_name)
    if not machine or id.text("an expression in quotes") is None:
        return None
    value = read_value(id)
    tree = ["obj", ["machine", ["str", machine]], ["id", value.tree]]
    return Value(tree, f"{machine}/{value.text}", value.parts)


_NOT_YET = ("spawn", "spawnChild", "stop", "stopChild")
_SYNONYMS = {
    "sendTo": "send",
    "sendParent": "send",
    "forwardTo": "send",
    "choose": "if",
    "pure": "if",
    "assign": "set",
    "delete": "unset",
    "push": "append",
    "fire": "raise",
    "queue": "enqueue",
    "job": "enqueue",
}
_SPELLING = 'write {"set": {"field": "expression"}} or another verb'


def read_actions(place: Place, depth: int = 0) -> tuple[Action, ...]:
    """Read one action or a list of them. ``depth``: how many actions they are nested in."""
    if place.broken:
        return ()
    if depth > limits.MAX_ACTION_DEPTH:
        place.error("SB111", f"actions inside actions more than {limits.MAX_ACTION_DEPTH} levels deep")
        return ()
    return tuple(action for one in place.one_or_many() for action in _read_action(one, depth))


def _read_action(place: Place, depth: int) -> list[Action]:
    if isinstance(place.value, str):
        place.error("SB116", f"the action {quote(place.value)} is only a name", _SPELLING)
        return []
    if not place.is_object("an action", _SPELLING):
        return []
    if "type" in place:
        return _read_typed(place, depth)
    if len(place.value) != 1:
        found = ", ".join(quote(verb) for verb in list(place.value)[:5]) or "none"
        place.error("SB116", f"an action has exactly one verb; here: {found}", "write a list of actions, one verb each")
        return []
    ((verb, argument),) = place.items()
    return _read_verb(verb, argument, depth)


def _read_typed(place: Place, depth: int) -> list[Action]:
    verb = place.at("type").text("the name of a verb")
    place.refuse_unknown(("type", "params"))
    if verb is None:
        return []
    if "params" not in place:
        place.report.add("SB106", place.below("params"), f'the action "{verb}" has no params', _SPELLING)
        return []
    return _read_verb(verb, place.at("params"), depth, place.at("type"))


def _read_verb(verb: str, argument: Place, depth: int, named: Place | None = None) -> list[Action]:
    """Read one verb. ``named`` is the place of the verb itself, when it is not the argument's key."""
    place = named or argument
    if verb in _NOT_YET:
        hint = 'a state starts and ends a child: "invoke": {"src": "machine:name"}'
        place.error("SB108", f'the action "{verb}" is not yet available', hint)
        return []
    if verb not in VERBS:
        known = " ".join(VERBS)
        hint = f'write "{_SYNONYMS[verb]}"' if verb in _SYNONYMS else ""
        hint = hint or place.report.suggestions.hint(verb, VERBS) or f"the verbs are: {known}"
        place.error("SB116", f"no action {quote(verb)}", hint)
        return []
    if argument.broken:
        return []
    if verb in _HOLDERS:
        return _HOLDERS[verb](argument, partial(read_actions, depth=depth + 1))
    return _PLAIN[verb](argument)


def _set(place: Place) -> list[Action]:
    if not place.is_object("an object of fields and values", _SPELLING):
        return []
    return [Action("set", value.path, name, value=read_value(value)) for name, value in place.items()]


def _append(place: Place) -> list[Action]:
    if not place.is_object("an object of fields and values", 'write {"append": {"field": "expression"}}'):
        return []
    return [Action("append", value.path, name, value=read_value(value)) for name, value in place.items()]


def _unset(place: Place) -> list[Action]:
    fields = []
    for one in place.one_or_many():
        name = one.text("a field's name", 'write {"unset": "field"}')
        if name is not None:
            fields.append(Action("unset", one.path, name))
    return fields


def _enqueue(place: Place) -> list[Action]:
    if not place.is_object("an object with src", 'write {"enqueue": {"src": "handler"}}'):
        return []
    place.refuse_unknown(("src", "queue", "input", "debounce", *WORK_KEYS), WORK_HINTS | {"handler": 'write "src"'})
    src = read_name(require_key(place, "src"), "handler", limits.check_handler_name)
    queue = read_name(place.part("queue"), "queue", limits.check_queue_name)
    value, keys = read_object(place.part("input"))
    work = replace(read_work(place), debounce=read_duration(place.part("debounce"), 0, 1, limits.MAX_DELAY))
    if work.debounce and (work.delay or not work.unique):
        place.at("debounce").error("SB119", '"debounce" needs "unique", and takes the place of "delay"')
    return [Action("enqueue", place.path, queue or src, src, value, keys, work=work)] if src else []


def _emit(place: Place) -> list[Action]:
    if not place.is_object("an object with type", 'write {"emit": {"type": "name"}}'):
        return []
    place.refuse_unknown(("type", "data"), {"event": 'write "type"', "payload": 'write "data"'})
    name = read_name(require_key(place, "type"), "message type", limits.check_event_name)
    refuse_reserved(place.at("type") if "type" in place else place, name, "emitted")
    value, keys = read_object(place.part("data"))
    return [Action("emit", place.path, name, value=value, keys=keys)] if name else []


def _log(place: Place) -> list[Action]:
    return [Action("log", place.path, value=read_value(place))]


_PLAIN: dict[str, Callable[[Place], list[Action]]] = {
    "set": _set,
    "unset": _unset,
    "append": _append,
    "raise": read_raise,
    "send": read_send,
    "cancel": read_cancel,
    "enqueue": _enqueue,
    "emit": _emit,
    "log": _log,
}
_HOLDERS: dict[str, Callable[[Place, ReadActions], list[Action]]] = {
    "if": read_if,
    "foreach": read_foreach,
    "block": read_block,
}
VERBS = (*_PLAIN, *_HOLDERS)


WORK_KEYS = ("retry", "lease", "timeout", "priority", "group", "weight", "delay", "unique")
WORK_HINTS = {
    "data": 'write "input"',
    "attempts": 'write "retry": {"attempts": 3}',
    "backoff": 'write "retry": {"backoff": "1s"}',
    "key": 'write "unique"',
    "deadline": 'write "timeout"',
    "debounce": "an instance waits for its own job, which no other replaces: use the action enqueue",
}
_RETRY_HINTS = {"delay": 'write "backoff"', "max": 'write "attempts"', "except": 'write "stop"', "not": 'write "stop"'}
_DEFAULT = Work()


def read_work(place: Place) -> Work:
    attempts, backoff, jitter, stop = _read_retry(place.part("retry"))
    return Work(
        attempts=attempts,
        backoff=backoff,
        jitter=jitter,
        stop=stop,
        lease=read_duration(place.part("lease"), limits.DEFAULT_LEASE, limits.MIN_LEASE, limits.MAX_LEASE),
        timeout=read_duration(place.part("timeout"), 0, limits.MIN_LEASE, limits.MAX_TIMEOUT),
        priority=_read_priority(place.part("priority")),
        group=_read_text(place.part("group")),
        weight=_read_weight(place.part("weight")),
        delay=read_delay(place.part("delay")),
        unique=_read_text(place.part("unique")),
    )


def _read_text(place: Place) -> Value | None:
    text = place.text("an expression in quotes", 'write it as text, such as "serial"')
    return None if text is None else read_value(place)


def _read_priority(place: Place) -> Value | None:
    """Read a priority: a number, or an expression that gives one."""
    if place.broken:
        return None
    if isinstance(place.value, str):
        return read_value(place)
    number = place.whole(0, limits.MAX_PRIORITY)
    return None if number in (None, limits.DEFAULT_PRIORITY) else Value(["num", number], str(number))


def _read_weight(place: Place) -> Value | None:
    """Read the weight of a group: a number, or an expression that gives one."""
    if place.broken:
        return None
    if isinstance(place.value, str):
        return read_value(place)
    number, least, most = place.value, limits.MIN_WEIGHT, limits.MAX_WEIGHT
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= most:
        place.error("SB114", f"a weight is a number from {least} to {most}, or an expression, not {describe(number)}")
        return None
    return None if number == 1 else Value(["num", number], f"{number:g}")


def _read_retry(place: Place) -> tuple[int, int, bool, tuple[str, ...]]:
    """Read the number of attempts, the backoff in ms, whether it has jitter, and what is not retried."""
    default = _DEFAULT
    if not place.is_object("an object", 'write {"attempts": 3, "backoff": "1s"}'):
        return default.attempts, default.backoff, default.jitter, default.stop
    place.refuse_unknown(("attempts", "backoff", "jitter", "stop"), _RETRY_HINTS)
    count = place.part("attempts").whole(1, limits.MAX_ATTEMPTS)
    backoff = read_duration(place.part("backoff"), default.backoff, 0, limits.MAX_BACKOFF)
    spread = place.part("jitter").flag()
    return count or default.attempts, backoff, True if spread is None else spread, _read_stop(place.part("stop"))


def _read_stop(place: Place) -> tuple[str, ...]:
    names: list[str] = []
    for one in place.one_or_many():
        name = one.text("the name of an exception", 'write ["ValueError"]')
        if name is None:
            continue
        if (why := limits.check_exception_kind(name)) is not None:
            one.error("SB107", f"the exception {name!r} {why}")
        names.append(name)
    if len(names) > limits.MAX_STOPS:
        place.error("SB111", f"{len(names)} exceptions; at most {limits.MAX_STOPS} are allowed")
    return tuple(names)
