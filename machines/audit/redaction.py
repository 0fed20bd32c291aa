"""Redacts the values of fields that are marked sensitive for callers without the permission to reveal them.

Which fields those are is said by the machine's definitions: what one version marks is sensitive in all. Texts that a
handler wrote (a job's error, its note, what it returned) may hold anything, so of a machine with such fields they are
hidden as a whole. Copies of a hidden value that stand elsewhere in the same instance are found by the value itself.

::

    seen = redactor_of(Actor.of(request), "payment")  # machines.people.redaction
    page["instance"] = seen.instance(instance)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from machines.connections import get_engine
from machines.engine import (
    BadInput,
    BadPayload,
    Because,
    Conflict,
    Explanation,
    Instance,
    InstanceExists,
    Job,
    LookupFailed,
    Preview,
    Refused,
    SensitiveFields,
    SignalboxError,
    Step,
    Suspended,
    UnknownMachine,
)
from machines.engine.definitions import Outline
from machines.engine.instances.encryption import list_texts

MASK = "•••"
NOTHING = SensitiveFields()
KIND = "(?:null|boolean|number|string|array|object)"
HARMLESS = re.compile(
    f"cannot (?:order|add) {KIND} and {KIND}|cannot look into {KIND}|nothing can be in {KIND}"
    f"|(?:a number|text|an object|a field name) was expected, not {KIND}"
    "|nothing there to look into \\(null\\)|division by zero|the result is not a finite number"
)
"""What a guard that cannot be worked out says without a value of what it read; any other message may hold one."""


class Concealed(BadInput):
    """Instances were to be found, ordered or selected by a field whose values the person may not see."""

    code = "SB439"

    def __init__(self, machine: str, field: str) -> None:
        super().__init__(
            f"the field {field!r} of {machine!r} is sensitive: finding by it would tell its values; "
            "that takes the right to reveal",
            machine=machine,
            field=field,
        )


class Redactor:
    """Hides what is sensitive in everything of one machine. Where nothing is, it gives back what it gets.

    ``data_of``: reads the data of an instance by its id, None where there is none. An explanation is masked by it: a
    guard may have read a copy of what is hidden. Without it, no value in an explanation is shown.
    """

    def __init__(
        self, sensitive: SensitiveFields = NOTHING, data_of: Callable[[str], Mapping[str, Any] | None] | None = None
    ) -> None:
        self._sensitive = sensitive
        self._read_data = data_of
        self._read: dict[str, bool] = {}  # instance -> whether its data is learnt
        self._known: set[str] = set()
        self._copies: re.Pattern[str] | None = None

    @property
    def open(self) -> bool:
        """Whether nothing is hidden."""
        return not self._sensitive

    def of(self, instance: str) -> Redactor:
        """Return the redactor for one instance, as far as that makes a difference."""
        return self

    @property
    def fields(self) -> frozenset[str]:
        """What is hidden, by the names of data and payload fields: data of such a name is hidden, too."""
        return self._sensitive.names

    def hides(self, field: str) -> bool:
        return field in self.fields

    # Parts

    def data(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Redact the data of an instance, or changes of it; None, for what is not set, stays."""
        if self.open:
            return dict(values)
        self.learn(values)
        return {name: self._redact_one(name, value) for name, value in values.items()}

    def payload(self, event: str, values: Any) -> Any:
        """Redact what an event brought. What handlers and children returned is theirs, and hidden as a whole."""
        if self.open:
            return values
        return _reduce_to_shape(values) if event.startswith(("done.", "error.")) else self.value(values)

    def value(self, value: Any) -> Any:
        """Return any JSON: what is called like a sensitive field is hidden, at any depth, and so is a value known to
        be."""
        if self.open:
            return value
        if isinstance(value, Mapping):
            return {name: self._redact_one(name, inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        if isinstance(value, str):
            return self.text(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return MASK if is_number and str(value) in self._known else value

    def text(self, text: str) -> str:
        """Return a text without the values known to be hidden."""
        if self._known and self._copies is None:  # the longest first: one may be the beginning of another
            self._copies = re.compile("|".join(map(re.escape, sorted(self._known, key=len, reverse=True))))
        return self._copies.sub(MASK, text) if self._copies else text

    def learn(self, *holders: Any) -> None:
        """Learn what is sensitive in these: it is found in texts and other values from now on."""
        for holder in () if self.open else holders:
            for value in find_named(holder, self._sensitive.names):
                self._known.update(list_texts(value))
                self._copies = None

    def redact_request(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an event or a repair was to take, as ``machines.instances.actions.Call`` has it."""
        seen = dict(asked)
        for name in ("data", "changes"):
            if isinstance(seen.get(name), Mapping):
                seen[name] = self.data(seen[name])
        if "payload" in seen:
            seen["payload"] = self.payload(seen["event"], seen["payload"])
        if "result" in seen:
            seen["result"] = self.payload("done.invoke", seen["result"])
        return seen

    def work(self, value: Any) -> Any:
        """Return the input of a job: made of the data in ways nobody can tell from outside, so only its names are
        shown."""
        return value if self.open else _reduce_to_shape(value)

    def redact_text(self, text: str) -> str:
        """Return what a handler said."""
        return text if self.open or not text else MASK

    # Records of the engine

    def instance(self, instance: Instance) -> Instance:
        if self.open:
            return instance
        data = self.data(instance.data)
        self._read[instance.id] = True
        timers = [
            replace(timer, event=self.text(timer.event), sendid=self.text(timer.sendid), target=self.text(timer.target))
            for timer in instance.timers
        ]
        return replace(
            instance, data=data, timers=timers, children=self.value(instance.children),
            parent=self.value(instance.parent),
        )  # fmt: skip

    def instances(self, instances: Iterable[Instance]) -> list[Instance]:
        """Return many of them: what is known of one is not looked for in the others."""
        return [Redactor(self._sensitive).instance(instance) for instance in instances]

    def steps(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps of one instance."""
        found = list(steps)
        if self.open:
            return found
        for step in found:
            self.learn(step.changes, step.payload)
        return [
            replace(
                step,
                payload=self.payload(step.event, step.payload),
                changes=self.data(step.changes),
                reason=self.text(step.reason),
            )
            for step in found
        ]

    def job(self, job: Job) -> Job:
        if self.open:
            return job
        return replace(
            job,
            input=self.work(job.input),
            data=self.data(job.data),
            unique=self.redact_text(job.unique),
            group=self.redact_text(job.group),
            batch=self.redact_text(job.batch),
            error=self.redact_text(job.error),
            trace=self.redact_text(job.trace),
            progress=job.progress and job.progress | {"note": self.redact_text(job.progress.get("note") or "")},
            log=tuple(attempt | {"error": self.redact_text(attempt.get("error") or "")} for attempt in job.log),
        )

    def explanation(self, explanation: Explanation) -> Explanation:
        if self.open:
            return explanation
        learnt = self._learn_instance(explanation.id)
        outcome = explanation.outcome
        if outcome and isinstance(outcome.get("data"), dict):
            outcome = outcome | {"data": self.data(outcome["data"])}
        candidates = [
            replace(candidate, because=[self._redact_reason(part, learnt) for part in candidate.because])
            for candidate in explanation.candidates
        ]
        return replace(
            explanation,
            candidates=candidates,
            outcome=outcome,
            error=explanation.error and self.redact_text(explanation.error),
        )

    def preview(self, preview: Preview) -> Preview:
        if self.open:
            return preview
        self._learn_instance(preview.id)
        added = [job | {"input": _reduce_to_shape(job.get("input"))} for job in preview.added]
        others = {name: self.value(getattr(preview, name)) for name in ("disarmed", "armed", "ended", "started")}
        return replace(preview, changes=self.data(preview.changes), added=added, **others)

    # Errors

    def error(self, error: BaseException) -> str:
        """Return what an error says, without the values it would repeat."""
        if self.open:
            return str(error)
        if isinstance(error, Refused):
            return str(self.explanation(error.explanation))
        return self.message(str(error), field=error.field if isinstance(error, BadPayload) else None)

    def message(self, text: str, field: str | None = None) -> str:
        """Return a message of the engine: one about a sensitive field may repeat what it was to hold."""
        named = [field] if field in self._sensitive.names else []
        named += [name for name in sorted(self._sensitive.names) if re.search(rf"\b{re.escape(name)}\b", text)]
        if named and not self.open:
            return f"what {named[0]!r} was to hold does not fit, or cannot be worked with (the field is sensitive)"
        return self.text(text)

    def facts(self, error: SignalboxError) -> dict[str, Any]:
        """Redact ``error.facts()``, the same way."""
        facts = error.facts()
        if self.open:
            return facts
        if isinstance(error, Refused):
            facts["explanation"] = self.explanation(error.explanation).as_dict()
        return facts | {"message": self.error(error)}

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Redact errors of the engine that leave the block."""
        try:
            yield
        except Refused as error:
            if self.open:
                raise
            raise type(error)(self.explanation(error.explanation), code=error.code) from None
        except BadPayload as error:
            if self.open:
                raise
            raise type(error)(self.error(error), field=error.field, code=error.code) from None

    # Inside

    def _redact_one(self, name: str, value: Any) -> Any:
        return MASK if name in self._sensitive.names and value is not None else self.value(value)

    def _redact_reason(self, part: Because, learnt: bool) -> Because:
        """Redact a reason: its message says what went wrong with which values, so it goes unless it is known to hold
        none.

        ``learnt``: whether copies of hidden values can be recognized; where they cannot, no value is shown.
        """
        names = [name for name in part.values if name.removeprefix("event.") in self._sensitive.names]
        values = {
            name: self.value(value) if learnt and name not in names else None if value is None else MASK
            for name, value in part.values.items()
        }
        harmless = part.message is None or HARMLESS.fullmatch(part.message)
        return replace(part, values=values, message=part.message if harmless else MASK)

    def _learn_instance(self, id: str) -> bool:
        """Learn the data of an instance, once; whether that could be done."""
        if id not in self._read:
            data = self._read_data(id) if self._read_data else None
            self.learn(data)
            self._read[id] = data is not None
        return self._read[id]


def redactor_if(reveal: bool, machine: str, known: SensitiveFields | None = None) -> Redactor:
    """Return the redactor of a machine. ``reveal``: whether everything may be seen; ``known``: what is sensitive, where
    that was read already."""
    if reveal:
        return Redactor()
    return strict_redactor(machine) if known is None else Redactor(known, lambda id: _read_data(machine, id))


def strict_redactor(machine: str) -> Redactor:
    """Return the redactor for what leaves to nobody in particular: the audit, logs, other systems."""
    if not machine:
        return Redactor()
    try:
        return Redactor(get_engine().sensitive(machine), lambda id: _read_data(machine, id))
    except (UnknownMachine, BadInput):  # what is in SQL alone, or nowhere, has no values to hide
        return Redactor()


def available_redactor(machine: str) -> Redactor | None:
    """Return the strict redactor also while Redis is away; None where neither Redis nor SQL says what is to be
    hidden."""
    try:
        return strict_redactor(machine)
    except SignalboxError:
        from django.db import Error  # a worker without Django never comes by here

        try:
            return _make_from_sql(machine)
        except Error:
            return None


_outlines: list[Callable[[str], Iterable[Outline]]] = []


def register_outlines(every_outline: Callable[[str], Iterable[Outline]]) -> None:
    """Have the outlines of a machine's versions read from SQL by this function while Redis is away."""
    _outlines[:] = [every_outline]


def _make_from_sql(machine: str) -> Redactor:
    """Return the redactor by the versions that SQL has."""
    data: set[str] = set()
    events: dict[str, frozenset[str]] = {}
    for outline in (outline for read in _outlines for outline in read(machine)):
        data |= {field.name for field in outline.data if field.sensitive}
        for name, event in outline.events.items():
            marked = {field.name for field in event.fields or () if field.sensitive}
            events[name] = events.get(name, frozenset()) | marked
    return Redactor(SensitiveFields(frozenset(data), {name: marked for name, marked in events.items() if marked}))


def _read_data(machine: str, id: str) -> Mapping[str, Any] | None:
    """Return the data of an instance; None where there is no such instance, or Redis does not say."""
    try:
        return get_engine().get(machine, id).data if id else None
    except SignalboxError:
        return None


def without_values(error: SignalboxError) -> str:
    """Return what an error says with nothing in it that an instance holds or an event brought, whatever may be
    sensitive."""
    if isinstance(error, Refused):
        return str(error.explanation.without_values())
    if isinstance(error, LookupFailed | InstanceExists | Suspended | Conflict):
        return str(error)
    field = error.field if isinstance(error, BadPayload) else None
    return f"it does not fit, or cannot be done ({error.code}{f', field {field!r}' if field else ''})"


ANY_ERROR = ("", "any")
"""Terms that find instances by whether anything is wrong with them, and not by what was said of it."""


def demand_findable(reveal: bool, machine: str, fields: Iterable[str], error: str = "", text: Any = None) -> None:
    """Raise Concealed where instances are not to be found or ordered by one of these data fields, or by the beginning
    of an ``error``: what a handler said may hold what is hidden. A ``text`` has to leave out all that is hidden."""
    asked = list(fields)
    by_error = error not in ANY_ERROR
    if not asked and not by_error and not text:
        return
    hidden = redactor_if(reveal, machine)
    for field in asked:
        if hidden.hides(field):
            raise Concealed(machine, field)
    if by_error and not hidden.open:
        raise Concealed(machine, "error")
    if text and not hidden.fields <= set(text.get("without", ()) if isinstance(text, Mapping) else ()):
        raise Concealed(machine, "text")


def find_encrypted(machine: str, fields: Collection[str]) -> list[str]:
    """Return those of the fields that the machine encrypts: what is kept may not hold their values in clear."""
    if not fields:
        return []
    try:
        return sorted(get_engine().sensitive(machine).encrypted.keys() & set(fields))
    except UnknownMachine:
        return []


def _reduce_to_shape(value: Any) -> Any:
    """Return the shape of an object without its values; of anything else nothing but that it is there."""
    if isinstance(value, Mapping):
        return {name: None if inner is None else MASK for name, inner in value.items()}
    return value if value is None or value == [] else MASK


def find_named(holder: Any, names: frozenset[str]) -> Iterator[Any]:
    """Yield every value that stands under one of the names, at any depth."""
    if isinstance(holder, Mapping):
        for name, value in holder.items():
            if name in names:
                yield value
            else:
                yield from find_named(value, names)
    elif isinstance(holder, list | tuple):
        for value in holder:
            yield from find_named(value, names)
