"""One trace from a call over its steps, jobs, messages and children; nothing of it where nobody traces."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from machines.engine import AsyncEngine, Conflict, EngineUnavailable, Enqueue, Fire, Refused, tracing

from .builders import counter, door, errand, machine, publish
from .jobs.stored_jobs import read_job
from .messages.mailing import noter, post, teller

SECRET = "4111-1111"
PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
DAMAGED = ["", "x", "0" * 10_240, PARENT[:-1], PARENT + "-x", PARENT.upper(), "00-" + "0" * 32 + PARENT[35:], "\n" * 55]
ORDER = machine(
    "order",
    {
        "Cart": {"on": {"pay": {"target": "Paying", "actions": {"set": {"card": "event.card"}}}}},
        "Paying": {"invoke": {"src": "charge", "input": {"card": "card"}, "onDone": "Packing"}},
        "Packing": {"invoke": {"id": "box", "src": "machine:parcel", "onDone": "Sent"}},
        "Sent": {"invoke": {"src": "thank"}},
    },
    context={"card": ""},
)
PARCEL = machine("parcel", {"Open": {"on": {"close": "Shut"}}, "Shut": {"type": "final"}})


class Spans:
    """The spans that ended, and the tracer that makes them."""

    def __init__(self, **options) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")

    def read(self):
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        return found

    def one(self):
        (found,) = self.read()
        return found


class Broken(SpanProcessor):
    """Fails with each span, at its start or at its end."""

    def __init__(self, at) -> None:
        self._at = at

    def on_start(self, span, parent_context=None):
        if self._at == "start":
            raise RuntimeError("no start")

    def on_end(self, span):
        if self._at == "end":
            raise RuntimeError("no end")


def facts(span):
    """Event, from, to and outcome."""
    return tuple(span.attributes.get(f"signalbox.{name}") for name in ("event", "from", "to", "outcome"))


def key(span):
    return tracing.write_context(span)


def ids(context):
    """Trace and span of a context, which a remote parent has from elsewhere."""
    return (context.trace_id, context.span_id)


def links(span):
    return [ids(link.context) for link in span.links]


@pytest.fixture
def spans(monkeypatch):
    found = Spans()
    monkeypatch.setattr(tracing, "_tracer", found.tracer)
    return found


def test_a_step_names_machine_event_and_states_and_never_data(engine, spans):
    publish(engine, ORDER)
    engine.create("order", "o")
    assert facts(spans.one()) == ("(create)", None, "Cart", "ok")
    engine.fire("order", "o", "pay", {"card": SECRET})
    span = spans.one()
    assert span.name == "step order"
    assert dict(span.attributes) == {
        "signalbox.machine": "order", "signalbox.instance": "o", "signalbox.event": "pay", "signalbox.from": "Cart",
        "signalbox.to": "Paying", "signalbox.outcome": "ok",
    }  # fmt: skip
    assert SECRET not in span.to_json()


def test_each_way_to_fire_is_a_step(engine, spans):
    publish(engine, counter())
    engine.create_many("counter", {"a": {}, "b": {}})
    assert [facts(each)[0] for each in spans.read()] == ["(create)", "(create)"]
    assert engine.fire_revision("counter", "a", "add") == 2
    assert facts(spans.one()) == ("add", "On", "On", "ok")
    answers = engine.fire_many(
        [Fire("counter", "a", "add"), Fire("counter", "gone", "add"), Fire("counter", "b", "stop")]
    )
    assert [getattr(each, "revision", None) for each in answers] == [3, None, 2]
    assert {facts(each)[2:] for each in spans.read()} == {("On", "ok"), (None, "noinstance"), ("Off", "ok")}
    assert engine.fire_revisions([Fire("counter", "a", "add")]) == [4]
    assert facts(spans.one()) == ("add", "On", "On", "ok")


async def fire_in(url, prefix, tracer):
    async with AsyncEngine.from_url(url, prefix=prefix) as engine:
        with tracer.start_as_current_span("request") as request:
            await engine.fire("door", "d", "open")
    return request


def test_a_call_of_a_coroutine_is_in_its_trace(engine, spans, redis_url, prefix):
    publish(engine, door())
    engine.create("door", "d")
    spans.read()
    request = asyncio.run(fire_in(redis_url, prefix, spans.tracer))
    step, ended = spans.read()
    assert facts(step) == ("open", "Shut", "Open", "ok")
    assert step.parent == request.get_span_context() == ended.context


def test_what_is_refused_says_so_without_its_values(engine, spans):
    publish(engine, counter())
    engine.create("counter", "c", {"n": 3})
    spans.read()
    with pytest.raises(Refused):
        engine.fire("counter", "c", "add")
    with pytest.raises(Conflict):
        engine.fire("counter", "c", "add", expect=7)
    refused, conflict = spans.read()
    assert (facts(refused), facts(conflict)[3]) == (("add", None, None, "refused"), "conflict")
    assert "n < 3" not in refused.to_json()


def test_a_fault_of_the_server_is_named_by_its_class(spans, own_engine, own_server):
    publish(own_engine, door())
    own_engine.create("door", "d")
    spans.read()
    own_server.stop()
    with pytest.raises(Exception) as caught:
        own_engine.at_once().fire("door", "d", "open")
    span = spans.one()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.attributes["error.type"] == span.status.description == type(caught.value).__name__
    assert not span.events


def test_one_trace_goes_over_job_handler_child_and_message(engine, spans):
    publish(engine, ORDER)
    publish(engine, PARCEL)
    engine.create("order", "o")
    spans.read()
    with spans.tracer.start_as_current_span("request"):
        engine.fire("order", "o", "pay", {"card": SECRET})
    fired, request = spans.read()
    (job,) = engine.take("order", "charge", "w")
    assert tracing.get_context(job) == key(fired)

    with tracing.handle(job):
        engine.enqueue("order", "mail")
    sent, handled = spans.read()
    (mail,) = engine.take("order", "mail", "w")
    assert (ids(sent.parent), tracing.get_context(mail)) == (ids(handled.context), key(sent))
    assert (handled.name, handled.kind, ids(handled.parent)) == (
        "process charge",
        trace.SpanKind.CONSUMER,
        ids(fired.context),
    )
    assert links(handled) == [ids(fired.context)]
    assert handled.attributes["messaging.message.id"] == job.id

    engine.complete_many([(job, {"paid": SECRET})])
    done, started = spans.read()
    assert facts(done) == ("done.invoke.Paying", "Paying", "Packing", "ok")
    assert ids(done.parent) == ids(handled.context)
    assert facts(started) == ("(create)", None, "Open", "applied")
    assert (started.name, ids(started.parent)) == ("process parcel", ids(done.context))
    assert links(started) == [ids(done.context)]

    child = engine.get("order", "o").children["box"]["id"]
    with spans.tracer.start_as_current_span("request"):
        engine.fire("parcel", child, "close")
    closed, returned, _ = spans.read()
    assert facts(returned) == ("done.invoke.box", "Packing", "Sent", "applied")
    assert ids(returned.parent) == ids(closed.context)
    (thanks,) = engine.take("order", "thank", "w")
    assert tracing.get_context(thanks) == key(returned)

    everything = [request, fired, sent, handled, done, started]
    assert len({span.context.trace_id for span in everything}) == 1
    assert not any(SECRET in span.to_json() for span in [*everything, closed, returned])


def test_a_handler_without_a_trace_begins_one(engine, spans, monkeypatch):
    publish(engine, errand())
    engine.create("errand", "e")
    with monkeypatch.context() as off:
        off.setattr(tracing, "find_tracer", lambda: None)
        engine.fire("errand", "e", "start")
    spans.read()
    (job,) = engine.take("errand", "work", "w")
    with tracing.handle(job):
        pass
    engine.complete(job)
    handled, done = spans.read()
    assert (handled.parent, list(handled.links)) == (None, [])
    assert facts(done) == ("done.invoke.Busy", "Busy", "Done", "ok")
    assert ids(done.parent) == ids(handled.context)


def test_a_handler_that_fails_is_named_by_its_class(engine, spans):
    publish(engine, errand())
    engine.create("errand", "e")
    engine.fire("errand", "e", "start")
    (job,) = engine.take("errand", "work", "w")
    spans.read()
    with pytest.raises(LookupError), tracing.handle(job):
        raise LookupError(SECRET)
    span = spans.one()
    assert (span.status.description, list(span.events)) == ("LookupError", [])
    assert SECRET not in span.to_json()


def test_the_consequences_of_a_death_are_in_the_trace_of_its_job(engine, spans):
    definition = errand()
    definition["states"]["Failed"]["invoke"] = {"src": "repair"}
    publish(engine, definition)
    engine.create("errand", "e")
    engine.fire("errand", "e", "start")
    (job,) = engine.take("errand", "work", "w")
    engine.fail(job, "no", retry=False)
    (repair,) = engine.take("errand", "repair", "w")
    assert tracing.get_context(repair) == tracing.get_context(job) == key(spans.read()[-1])


def test_a_message_keeps_its_trace_while_it_waits(engine, spans):
    publish(engine, teller())
    publish(engine, noter())
    engine.create("teller", "t")
    engine.create("noter", "x")
    engine.suspend("noter", "x", reason="stock-taking", actor="ann")
    spans.read()
    engine.fire("teller", "t", "tell", {"id": "x", "n": 1})
    told, held = spans.read()
    assert (facts(held)[3], ids(held.parent)) == ("held", ids(told.context))
    (kept,) = engine.client.lrange(f"{engine.keys.partition('noter').root}:held:x", 0, -1)
    assert json.loads(kept)["body"]["traceparent"] == key(held)


def test_messages_without_a_trace_have_no_spans(engine, spans):
    publish(engine, teller())
    publish(engine, noter())
    engine.create("teller", "t")
    engine.create("noter", "x")
    post(engine, "x", 1)
    spans.read()
    engine.tick()
    assert (engine.get("noter", "x").data["got"], list(spans.read())) == ([1], [])


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_context_counts_as_none(engine, spans, damaged):
    publish(engine, errand())
    engine.create("errand", "e")
    root = engine.keys.partition("errand").root
    reply = engine.client.fcall("sb_fire", 1, root, "e", "start", "", "", "", "", "", "", "", "", damaged)
    assert reply[0] == "OK"
    (job,) = engine.take("errand", "work", "w")
    stored = read_job(engine.client, f"{root}:job:{job.id}").get("traceparent")
    assert stored is None or stored.startswith("00-000"), "it has the form, and means nothing"
    spans.read()
    object.__setattr__(job, "traceparent", damaged)
    with tracing.handle(job):
        pass
    assert (spans.one().parent, engine.complete(job).state) == (None, "Done")


def test_what_is_not_sampled_goes_on_as_not_sampled(engine, monkeypatch):
    spans = Spans(sampler=ALWAYS_OFF)
    monkeypatch.setattr(tracing, "_tracer", spans.tracer)
    publish(engine, errand())
    engine.create("errand", "e")
    engine.fire("errand", "e", "start")
    (job,) = engine.take("errand", "work", "w")
    assert int(tracing.get_context(job)[-2:], 16) & trace.TraceFlags.SAMPLED == 0
    assert engine.complete(job).state == "Done"
    assert list(spans.read()) == []


def test_without_a_trace_nothing_is_sent_or_stored(engine, monkeypatch):
    publish(engine, ORDER)
    publish(engine, PARCEL)
    sent = []
    real = engine._caller.call
    monkeypatch.setattr(engine._caller, "call", lambda *words: sent.append(words) or real(*words))
    engine.create("order", "o")
    engine.fire("order", "o", "pay", {"card": SECRET})
    (job,) = engine.take("order", "charge", "w")
    with tracing.handle(job):
        pass
    engine.complete(job)
    assert [len(words) for words in sent if words[0] in tracing.PLACES] == [9, 10]
    assert "traceparent" not in str(sent) + str(list(engine.client.scan_iter("*traceparent*")))
    assert tracing.find_tracer() is None
    assert engine.enqueue_many([Enqueue("order", "mail")])[0].queue == "mail"


def test_a_log_record_of_a_job_has_the_ids_of_its_trace(spans):
    assert tracing.read_ids(PARENT) == {"trace_id": "a" * 32, "span_id": "b" * 16}
    assert tracing.read_ids("") == tracing.read_ids() == {"trace_id": "", "span_id": ""}
    with tracing.attach(PARENT):
        assert tracing.read_ids()["trace_id"] == "a" * 32
    with spans.tracer.start_as_current_span("request") as request:
        assert tracing.read_ids()["span_id"] == f"{request.get_span_context().span_id:016x}"


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_processor_that_fails_costs_no_step_and_no_job(engine, spans, monkeypatch, caplog, at):
    publish(engine, ORDER)
    publish(engine, PARCEL)
    monkeypatch.setattr(tracing, "_next_line", 0.0, raising=False)
    spans.provider.add_span_processor(Broken(at))
    engine.create("order", "o")
    engine.fire("order", "o", "pay", {"card": SECRET})
    (job,) = engine.take("order", "charge", "w")
    with tracing.handle(job):
        assert engine.enqueue("order", "mail").queue == "mail"
    (outcome,) = engine.complete_many([(job, {"paid": 1})])
    assert outcome.transitions
    assert engine.get("parcel", engine.get("order", "o").children["box"]["id"]).state == "Open"
    with tracing.serve("GET", {}) as request:
        request.note_response("/pages", 500)
    assert caplog.text.count("OpenTelemetry failed") == 1


def test_what_a_processor_raises_is_logged_without_what_it_came_with(spans, monkeypatch, caplog):
    monkeypatch.setattr(tracing, "_next_line", 0.0)
    spans.provider.add_span_processor(Broken("end"))
    with pytest.raises(LookupError), tracing.serve("GET", {}):
        raise LookupError(SECRET)
    assert "RuntimeError in " in caplog.text
    assert SECRET not in caplog.text


def test_a_context_outlives_a_span_that_cannot_begin(engine, spans):
    publish(engine, errand())
    engine.create("errand", "e")
    engine.fire("errand", "e", "start")
    (job,) = engine.take("errand", "work", "w")
    made = tracing.get_context(job)
    spans.provider.add_span_processor(Broken("start"))
    with tracing.handle(job):
        pass
    body = json.dumps({"traceparent": PARENT}, separators=(",", ":"))
    assert (tracing.get_context(job), tracing.Delivery.begin("event", "noter", "x", body)[1]) == (made, body)


def test_spans_end_where_no_answer_comes(engine, spans, monkeypatch):
    def fail(*words):
        if not isinstance(words[0], str):
            list(words[0])
        raise EngineUnavailable("away")

    publish(engine, errand())
    engine.create("errand", "e")
    engine.fire("errand", "e", "start")
    (job,) = engine.take("errand", "work", "w")
    spans.read()
    for name in ("call", "many", "stream"):
        monkeypatch.setattr(engine._caller, name, fail)
    for call in (
        lambda: engine.complete(job),
        lambda: engine.complete_many([(job, None)]),
        lambda: engine.create_many("errand", {"f": {}}),
        lambda: engine.fire_many([Fire("errand", "e", "start")]),
    ):
        with pytest.raises(EngineUnavailable):
            call()
        assert spans.one().attributes["error.type"] == "EngineUnavailable"


def test_what_is_not_sampled_asks_for_no_whole_instance(engine, monkeypatch):
    monkeypatch.setattr(tracing, "_tracer", Spans(sampler=ALWAYS_OFF).tracer)
    publish(engine, errand())
    engine.create("errand", "e")
    sent, real = [], engine._caller.call
    monkeypatch.setattr(engine._caller, "call", lambda *words: sent.append(words) or real(*words))
    assert engine.fire_revision("errand", "e", "start") == 2
    *_, returning, traceparent = sent[0]
    assert (returning, len(traceparent)) == ("version", len(PARENT))


@pytest.mark.parametrize("name", ["OTEL_PROPAGATORS", "OTEL_PYTHON_TRACER_PROVIDER"])
def test_a_setting_of_opentelemetry_that_names_nothing_leaves_the_engine_alone(name):
    program = """
from machines.engine import tracing
assert tracing.find_tracer() is None
from opentelemetry.sdk.trace import TracerProvider
tracing._tracer = TracerProvider().get_tracer("test")
with tracing.serve("GET", {}) as span:
    print(len(span.traceparent))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=os.environ | {name: "nobody"}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, str(len(PARENT))), done.stderr


def test_a_method_that_http_does_not_name_is_other(spans):
    with tracing.serve("4111-1111", {}):
        pass
    span = spans.one()
    assert (span.name, dict(span.attributes)) == ("HTTP", {"http.request.method": "_OTHER"})
