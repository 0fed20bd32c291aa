"""Spans of OpenTelemetry for requests, steps and handlers, and the trace context that jobs and messages keep.

It needs ``opentelemetry-api`` (the extra ``otel``) and an SDK that the host has set up: without them nothing is made,
sent or stored. Spans name machines, instances, events and states. They have no data: no payload, no value, no message
of an exception.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from traceback import extract_tb
from typing import Any, ParamSpec, Self

from .keys import get_machine

try:
    from opentelemetry import context as contexts
    from opentelemetry import trace
except ImportError:
    _is_installed = False
else:
    _is_installed = True

log = logging.getLogger(__name__)

P = ParamSpec("P")
Call = tuple[str, str, Sequence[Any]]
"""Function, root, arguments."""

SYSTEM = "signalbox"
LOOK = 0.1  # seconds
PAUSE = 60.0  # seconds between two lines in the log about an SDK that fails, and until it is looked for again
PLACES = {"sb_fire": 10, "sb_create": 7}
"""Function that takes a step for a caller -> the arguments before the trace context."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
REVISION_ALONE = 9
"""The place of the argument of ``sb_fire`` that leaves the instance out of the reply."""
_FORM = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_IN_BODY = re.compile(r'"traceparent":"(' + _FORM.pattern + ')"')  # quotes within a value have a backslash
_tracer: Any = None
_next_look = _next_line = 0.0


def find_tracer() -> Any:
    """Return the tracer of the host's SDK; None where there is none. OpenTelemetry is asked for it ten times a second
    at most: that takes some microseconds."""
    global _tracer, _next_look
    if _tracer is None and _is_installed and (now := time.monotonic()) >= _next_look:
        _next_look = math.inf  # the search may log, and a line of the log asks for its trace
        pause = PAUSE
        try:
            provider = trace.get_tracer_provider()  # raises where OTEL_PYTHON_TRACER_PROVIDER names none that is there
            if not isinstance(provider, trace.ProxyTracerProvider):
                _tracer = provider.get_tracer(SYSTEM)
            pause = LOOK
        except Exception as error:
            _report_failure(error)
        finally:
            _next_look = now + pause
    return _tracer


def _report_failure(error: Exception) -> None:
    """Log what OpenTelemetry raised, once a minute at most: each call may meet it. No message is logged: what a handler
    raised before it may hold data."""
    global _next_line
    if (now := time.monotonic()) >= _next_line:
        _next_line = now + PAUSE
        frame = extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {frame.filename}:{frame.lineno}"
        log.warning("OpenTelemetry failed; calls and jobs go on without it: %s", where)


def _harmless(method: Callable[P, None]) -> Callable[P, None]:
    """Make a method that raises nothing: a sampler or a span processor of the host must not fail a step or a job."""

    @wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception as error:
            _report_failure(error)

    return run


def write_context(span: Any) -> str:
    """Return the context of a span as W3C traceparent, "" where it has none."""
    found = span.get_span_context()
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}" if found.is_valid else ""


def get_context(job: object) -> str:
    """Return the trace context that a job came with or that its handler went on with, "" for none."""
    found: str = getattr(job, "traceparent", "")
    return found


def read_ids(traceparent: str | None = None) -> dict[str, str]:
    """Return ``trace_id`` and ``span_id`` for a log record, of the current span or of a context; "" for none."""
    if traceparent is None:
        traceparent = write_context(trace.get_current_span()) if find_tracer() else ""
    match = _FORM.fullmatch(traceparent)
    return {"trace_id": match[1] if match else "", "span_id": match[2] if match else ""}


def attach(traceparent: str) -> AbstractContextManager[Any]:
    """Run the block in a trace: what it logs has the trace's id, where the host's logging asks for it."""
    found = _read_parent(traceparent) if find_tracer() else None
    return nullcontext() if found is None else _make_current(trace.NonRecordingSpan(found))


class Span:
    """A span that is not the current one. ``traceparent`` goes along with what it does, "" where nobody records it."""

    def __init__(self, name: str, kind: str, facts: Mapping[str, Any], parent: str = "") -> None:
        """Begin below ``parent``, to which a consumer is linked as well, else below the current span."""
        self.span: Any = trace.INVALID_SPAN
        self.traceparent = ""
        self._begin(name, kind, facts, parent)

    @_harmless
    def _begin(self, name: str, kind: str, facts: Mapping[str, Any], parent: str) -> None:
        found, kinds = _read_parent(parent), trace.SpanKind
        context = None if found is None else trace.set_span_in_context(trace.NonRecordingSpan(found))
        links = [trace.Link(found)] if found is not None and kind == "CONSUMER" else []
        self.span = find_tracer().start_span(name, context, kinds[kind], attributes=facts, links=links)
        self.traceparent = write_context(self.span)

    def __enter__(self) -> Self:
        return self

    @_harmless
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trail: object) -> None:
        if error is not None:
            self.fail(error)
        self.span.end()

    def note(self, **facts: str) -> None:
        """Add attributes."""
        for name, value in facts.items():
            self.span.set_attribute(f"{SYSTEM}.{name}", value)

    def note_states(self, before: str, after: str) -> None:
        """Note the active states before and after; each text has a line for each."""
        if before:  # a new instance comes from none
            self.note(**{"from": before.replace("\n", ", ")})
        self.note(to=after.replace("\n", ", "))

    @_harmless
    def fail(self, error: BaseException) -> None:
        """Mark an error by the name of its class: its message may hold data."""
        self.span.set_attribute("error.type", type(error).__name__)
        self.span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))


class Step(Span):
    """The span of a step."""

    def __init__(self, machine: str, instance: str, event: str, parent: str = "") -> None:
        """Begin below the current span, else below ``parent``."""
        if trace.get_current_span().get_span_context().is_valid:
            parent = ""
        super().__init__(f"step {machine}", "INTERNAL", _name_step(machine, instance, event), parent)

    @classmethod
    def of_call(cls, function: str, root: str, args: Sequence[Any]) -> tuple[Step, tuple[Any, ...]]:
        """Begin the step of a call; return it, and the arguments with its context. For a span that is recorded the
        whole instance is asked for, which names its states."""
        event = str(args[1]) if function == "sb_fire" else "(create)"
        step = cls(get_machine(root) or "", str(args[0]), event)
        words = [*args, *[""] * (PLACES[function] - len(args))]
        if step.span.is_recording() and function == "sb_fire":
            words[REVISION_ALONE] = ""
        return step, (*words, step.traceparent) if step.traceparent else tuple(args)

    @_harmless
    def read(self, reply: Any) -> None:
        """Note what a call answered, or raised."""
        if isinstance(reply, Exception):
            self.fail(reply)
            return
        self.note(outcome=str(reply[0]).lower())
        if reply[0] == "OK" and len(reply) > 3 and self.span.is_recording():
            self.note_states(str(reply[5]) if len(reply) > 5 else "", str(json.loads(reply[3])["_state"]))


class Spans(dict[Any, Any]):
    """Spans of a batch, by the places of their calls. Those without an answer end with the block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trail: object) -> None:
        for span in self.values():
            span.__exit__(kind, error, trail)

    def end(self, place: object, *answer: Any) -> None:
        """End the span of a call that was answered, if it has one."""
        span = self.pop(place, None)
        if span is not None:
            with span:
                span.read(*answer)


def begin_steps(calls: Iterable[Call], steps: Spans) -> Iterator[Call]:
    """Yield the calls of a batch with the contexts of their steps, which go to ``steps`` by the place of the call."""
    for place, (function, root, args) in enumerate(calls):
        if function in PLACES:
            steps[place], args = Step.of_call(function, root, args)
        yield function, root, args


def begin_ends(jobs: Iterable[tuple[int, Any]], steps: Spans, otherwise: str) -> str:
    """Begin the steps of instances whose jobs end; they go to ``steps`` by the places of the jobs. Return the argument
    of ``sb_complete`` that has their contexts: ``otherwise`` where nobody records them."""
    if find_tracer() is None:
        return otherwise
    found = []
    for place, job in jobs:
        if job.invoke:
            steps[place] = Step(job.machine, job.instance, f"done.invoke.{job.invoke}", get_context(job))
        found.append(steps[place].traceparent if job.invoke else "")
    return " ".join(["traced", *(each or "-" for each in found)]) if any(found) else otherwise


def skip_ends(how: str, count: int) -> str:
    """Return the argument of ``begin_ends`` for the jobs behind the first ``count``."""
    first, *contexts = how.split(" ")
    return " ".join([first, *contexts[count:]])


class Delivery(Span):
    """The span of a message that reaches an instance, with the step that it causes there."""

    def __init__(self, kind: str, machine: str, instance: str, parent: str) -> None:
        facts = _name_step(machine, instance, "") | _name_message("deliver", machine) | {f"{SYSTEM}.message": kind}
        super().__init__(f"process {machine}", "CONSUMER", facts, parent)

    @classmethod
    def begin(cls, kind: str, machine: str, instance: str, body: str) -> tuple[Delivery | None, str]:
        """Begin the span of a message that is in a trace; return it, and the body with its context in place of the
        sender's. None for any other message."""
        match = _IN_BODY.search(body)
        if match is None:
            return None, body
        span = cls(kind, machine, instance, match[1])
        return span, body[: match.start(1)] + (span.traceparent or match[1]) + body[match.end(1) :]

    @_harmless
    def read(self, outcome: str, why: str) -> None:
        """Note what became of the message. ``why``: of one that was applied, the step as JSON."""
        self.note(outcome=outcome)
        if outcome == "applied" and why:
            event, before, after = json.loads(why)
            self.note(event=event)
            self.note_states(before, after)


def handle(job: Any) -> AbstractContextManager[None]:
    """Run the block, the handler of a taken job, in a span of its own: a child of the span of the step that made the
    job, to which it is linked as well. What the block fires is in its trace, and so is the end of the job."""
    return _UNTRACED if find_tracer() is None else _trace_handler(job)


_UNTRACED = nullcontext()


@contextmanager
def _trace_handler(job: Any) -> Iterator[None]:
    facts = _name_message("process", job.queue) | {
        "messaging.message.id": job.id, f"{SYSTEM}.machine": job.machine, f"{SYSTEM}.instance": job.instance,
        f"{SYSTEM}.handler": job.src, f"{SYSTEM}.attempt": job.attempt,
    }  # fmt: skip
    with Span(f"process {job.queue}", "CONSUMER", facts, get_context(job)) as span, _make_current(span.span):
        object.__setattr__(job, "traceparent", span.traceparent or get_context(job))
        yield


class Request(Span):
    """The span of a request to a page or to the API, which is the current one while it is answered."""

    def __init__(self, method: str) -> None:
        known = method in METHODS
        self._method = method if known else "HTTP"
        super().__init__(self._method, "SERVER", {"http.request.method": method if known else "_OTHER"})

    @_harmless
    def note_response(self, route: str, status: int) -> None:
        """Note which route answered, and how."""
        self.span.set_attribute("http.response.status_code", status)
        if route:
            self.span.set_attribute("http.route", route)
            self.span.update_name(f"{self._method} {route}")
        if status >= 500:
            self.span.set_attribute("error.type", str(status))
            self.span.set_status(trace.Status(trace.StatusCode.ERROR))


@contextmanager
def serve(method: str, headers: Mapping[str, str]) -> Iterator[Request | None]:
    """Run the block, the answer to a request, in a span below the one that the headers name, as the host's propagator
    reads them; headers that are damaged or too long name none. None where nothing traces, or the host does already."""
    if find_tracer() is None or trace.get_current_span().get_span_context().is_valid:
        yield None
        return
    outer = contexts.attach(_read_headers(headers))
    try:
        with Request(method) as span, _make_current(span.span):
            yield span
    finally:
        contexts.detach(outer)


def begin_sending(destination: str) -> Span:
    """Begin the span of jobs that a caller puts on queues."""
    return Span(f"send {destination}", "PRODUCER", _name_message("enqueue", destination))


@cache
def _find_propagate() -> Any:
    """Return OpenTelemetry's ``propagate``; None where OTEL_PROPAGATORS names one that is not installed: then it cannot
    be imported, which must not keep the engine from being imported."""
    try:
        from opentelemetry import propagate
    except Exception as error:
        _report_failure(error)
        return None
    return propagate


def _read_headers(headers: Mapping[str, str]) -> Any:
    try:
        propagate = _find_propagate()
        return contexts.get_current() if propagate is None else propagate.extract(headers)
    except Exception as error:
        _report_failure(error)
        return contexts.get_current()


def _read_parent(traceparent: str) -> Any:
    """Return the context of a remote span; None for what is no traceparent."""
    match = _FORM.fullmatch(traceparent)
    if match is None:
        return None
    flags = trace.TraceFlags(int(match[3], 16))
    found = trace.SpanContext(int(match[1], 16), int(match[2], 16), is_remote=True, trace_flags=flags)
    return found if found.is_valid else None


def _make_current(span: Any) -> AbstractContextManager[Any]:
    """Make a span the current one of a block. What the block raises is not recorded: its message may hold data."""
    return trace.use_span(span, record_exception=False, set_status_on_exception=False)


def _name_step(machine: str, instance: str, event: str) -> dict[str, Any]:
    named = {f"{SYSTEM}.machine": machine, f"{SYSTEM}.instance": instance}
    return named | ({f"{SYSTEM}.event": event} if event else {})


def _name_message(operation: str, destination: str) -> dict[str, Any]:
    """Return attributes as OpenTelemetry's conventions for messaging name them."""
    kind = {"enqueue": "send"}.get(operation, "process")
    return {
        "messaging.system": SYSTEM, "messaging.operation.name": operation, "messaging.operation.type": kind,
        "messaging.destination.name": destination,
    }  # fmt: skip
