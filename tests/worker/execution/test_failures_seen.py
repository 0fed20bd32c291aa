"""A handler that dies is seen by whoever watches: in the log with its traceback, by signals, on the Errors page."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import socket
import subprocess
import sys

import pytest

from machines import signals
from machines.conf.encryption.field_codec import SecretKeyCodec
from machines.engine import BadPayload, Engine, Refused, tracing
from machines.jobs.failures.duties import FailureFollower
from machines.models import FailureGroup
from tests.engine.builders import fields, machine
from tests.engine.test_tracing import Spans
from tests.installation.processes import ROOT
from tests.pages.conftest import as_, user_of
from tests.pages.reading import read
from tests.webhooks.conftest import Receiver
from tests.worker.builders import Launcher, options, registry_of

__all__ = ["as_", "user_of"]


def work(*, sensitive: bool = False, on_error: bool = False) -> dict:
    invoke = {"src": "run", "queue": "work", "retry": {"attempts": 2, "backoff": "1ms", "jitter": False}}
    states = {"Busy": {"invoke": invoke | ({"onError": "Failed"} if on_error else {})}, "Failed": {}}
    card = {"type": "string", "default": "", "sensitive": sensitive}
    return machine("work", states, context={"type": "object", "properties": {"card": card}})


def break_down(job):
    raise KeyError(f"card {job.data['card']} is void")


@pytest.fixture
def fail(engine, db):
    """Publishes a machine, and has a worker run its handler until the job is dead."""

    def failed(**kind) -> None:
        engine.publish(work(**kind))
        engine.create("work", "w-1", {"card": "4711"})
        given = options(drain=True)
        Launcher(engine, registry_of(run=break_down), given, on_failure=signals.send_failure).run()

    return failed


def test_each_attempt_that_dies_is_one_record_with_its_traceback_and_fields(fail, caplog):
    fail()
    first, second = (record for record in caplog.records if record.name == "signalbox.jobs")
    assert (first.levelno, first.machine, first.instance, first.attempt, second.attempt) == (
        logging.ERROR, "work", "w-1", 1, 2,
    )  # fmt: skip
    assert first.job == second.job
    kind, error, trace = first.exc_info
    assert (kind, error.args) == (KeyError, ("card 4711 is void",))
    while trace.tb_next:
        trace = trace.tb_next
    assert trace.tb_frame.f_code.co_name == "break_down"


def test_records_of_the_host_that_have_a_trace_of_their_own_keep_it(fail, caplog):
    make = logging.getLogRecordFactory()

    def make_with_trace(*words, **named):
        record = make(*words, **named)
        record.trace_id = "of the host"
        return record

    logging.setLogRecordFactory(make_with_trace)
    try:
        fail()
    finally:
        logging.setLogRecordFactory(make)
    records = [record for record in caplog.records if record.name == "signalbox.jobs"]
    assert [(record.trace_id, record.attempt) for record in records] == [("of the host", 1), ("of the host", 2)]


def test_of_a_machine_with_sensitive_fields_the_record_has_frames_and_no_text(fail, caplog):
    fail(sensitive=True)
    assert "4711" not in caplog.text
    record = next(record for record in caplog.records if record.name == "signalbox.jobs")
    assert record.exc_info[0].__name__ == "KeyError"
    assert "in break_down" in caplog.text


def test_of_a_job_that_decrypted_something_record_and_spans_have_no_text(
    engine, redis_url, prefix, db, caplog, monkeypatch
):
    spans = Spans()
    monkeypatch.setattr(tracing, "_tracer", spans.tracer)
    coded = Engine.from_url(redis_url, prefix=prefix, codec=SecretKeyCodec())
    coded.publish(machine("vault", {"A": {}}, context=fields(card={"type": "string", "encrypted": True})))
    coded.publish(work())
    coded.create("work", "w-1", coded.encrypt("vault", {"card": "4711"}))
    Launcher(coded, registry_of(run=break_down), options(drain=True)).run()
    with pytest.raises(BadPayload):
        coded.fire("vault", "v-1", "open", {"card": 4711})
    coded.client.close()
    assert "in break_down" in caplog.text
    assert "4711" not in caplog.text
    made = spans.read()
    assert "KeyError" in [span.attributes.get("error.type") for span in made]
    assert not any("4711" in span.to_json() for span in made)


def test_signals_are_sent_and_a_receiver_that_raises_costs_no_job(fail, engine):
    seen = []

    def receive(signal, sender, **facts):
        seen.append((signal, sender, facts["machine"], facts["instance"], facts["attempt"], facts["place"]))
        raise RuntimeError("the receiver is broken")

    signals.job_failed.connect(receive)
    signals.job_dead.connect(receive)
    try:
        fail(on_error=True)
    finally:
        signals.job_failed.disconnect(receive)
        signals.job_dead.disconnect(receive)
    assert [found[1:] for found in seen] == [
        ("run", "work", "w-1", 1, "delayed"),
        ("run", "work", "w-1", 2, "dead"),
        ("run", "work", "w-1", 2, "dead"),
    ]
    assert [found[0] for found in seen] == [signals.job_failed, signals.job_failed, signals.job_dead]
    assert engine.get("work", "w-1").state == "Failed"


def test_an_event_that_is_refused_sends_a_signal_before_it_raises(engine, db):
    seen = []

    def receive(sender, **facts):
        seen.append((sender, facts["instance"], facts["event"], facts["error"].code))

    engine.publish(work())
    engine.create("work", "w-1")
    signals.instance_refused.connect(receive)
    try:
        with pytest.raises(Refused):
            engine.fire("work", "w-1", "nothing")
    finally:
        signals.instance_refused.disconnect(receive)
    assert seen == [("work", "w-1", "nothing", "SB431")]


def test_a_receiver_that_is_a_coroutine_hides_no_refusal_in_an_event_loop(engine, db, caplog):
    async def receive(sender, **facts): ...

    async def fire():
        engine.fire("work", "w-1", "nothing")

    engine.publish(work())
    engine.create("work", "w-1")
    signals.instance_refused.connect(receive)
    try:
        with pytest.raises(Refused):
            asyncio.run(fire())
    finally:
        signals.instance_refused.disconnect(receive)
    assert "were not called" in caplog.text


def test_with_on_error_the_errors_page_shows_message_and_traceback(fail, engine, as_):
    fail(on_error=True)
    FailureFollower(engine).look()
    page = read(as_("supervisor").get(f"/errors/{FailureGroup.objects.get().pk}/"))
    assert "card 4711 is void" in page.text
    assert "in break_down" in page.one("pre", aria_label="Traceback").text


REPORTING = """
import sys
import sentry_sdk
sentry_sdk.init(dsn=sys.argv[1])
from machines.engine import Engine
from tests.worker.builders import drain, registry_of

def run(job):
    raise KeyError("the card is void")

print(drain(Engine.from_url(sys.argv[2], prefix=sys.argv[3]), registry_of(run=run)).counters)
sentry_sdk.flush(60)
"""


def drain_with_sentry(address: str, redis_url: str, prefix: str) -> str:
    command = [sys.executable, "-c", REPORTING, f"http://key@{address}/1", redis_url, prefix]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout


def test_the_sdk_of_sentry_reports_each_attempt_that_dies_without_a_line_of_code(engine, redis_url, prefix):
    receiver = Receiver()
    engine.publish(work())
    engine.create("work", "w-1")
    try:
        assert "1 dead" in drain_with_sentry(receiver.url.split("/")[2], redis_url, prefix)
    finally:
        receiver.close()
    lines = [line for _, _, body in receiver.requests for line in gzip.decompress(body).splitlines()]
    events = [event for line in lines if "exception" in (event := json.loads(line))]
    assert [event["extra"]["attempt"] for event in events] == [1, 2]
    assert {(event["logger"], event["extra"]["machine"], event["extra"]["instance"]) for event in events} == {
        ("signalbox.jobs", "work", "w-1")
    }
    error = events[0]["exception"]["values"][-1]
    assert (error["type"], error["stacktrace"]["frames"][-1]["function"]) == ("KeyError", "run")


def test_a_sentry_that_is_away_costs_no_job(engine, redis_url, prefix):
    engine.publish(work(on_error=True))
    engine.create("work", "w-1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        drain_with_sentry(f"127.0.0.1:{closed.getsockname()[1]}", redis_url, prefix)
    assert engine.get("work", "w-1").state == "Failed"
