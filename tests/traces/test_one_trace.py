"""One trace of all parts, as a collector gets it: a request to a real site, a step, the handler in a worker, what
that fires, a child and a message."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.contrib.auth import get_user_model
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from dashboard.site.log_format import Line
from machines.conf.server.cluster import free_ports
from machines.engine import tracing
from machines.people import tokens
from machines.people.permissions import RIGHTS
from tests.installation.processes import eventually

from .collector import Collector, read_facts

pytestmark = pytest.mark.faults
PROGRAM = Path(__file__).resolve().parents[2] / "machines" / "cli.py"
SECRET = "4111-1111"
TRACE, SENDER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HANDLERS = """
import logging, os
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from machines.connections import get_engine
from machines.worker import handler

provider = TracerProvider()
provider.add_span_processor(
    BatchSpanProcessor(OTLPSpanExporter(os.environ["COLLECTOR"], timeout=1), schedule_delay_millis=100)
)
trace.set_tracer_provider(provider)

class Ids(logging.Filter):
    def filter(self, record):
        if hasattr(record, "trace_id"):
            print("FAILED IN", record.trace_id, record.job, flush=True)
        return True

logging.getLogger("signalbox.jobs").addFilter(Ids())

@handler("charge")
async def charge(job):
    return {"paid": job.input["card"]}

@handler("weigh")
def weigh(job):
    get_engine().fire("scales", "s", "put", actor=job.actor)

@handler("break")
def fail(job):
    raise LookupError(job.input["card"])
"""
ORDER = {
    "id": "order",
    "initial": "Cart",
    "context": {"card": ""},
    "states": {
        "Cart": {"on": {"pay": {"target": "Paying", "actions": {"set": {"card": "event.card"}}}}},
        "Paying": {"invoke": {"src": "charge", "input": {"card": "card"}, "onDone": "Packing"}},
        "Packing": {"invoke": {"id": "box", "src": "machine:parcel", "onDone": "Sent"}},
        "Sent": {"invoke": {"src": "break", "input": {"card": "card"}, "retry": {"attempts": 1}, "onError": "Closed"}},
        "Closed": {},
    },
}
PARCEL = {
    "id": "parcel",
    "initial": "Open",
    "states": {
        "Open": {"invoke": {"src": "weigh", "onDone": "Shut"}},
        "Shut": {"type": "final"},
    },
}
SCALES = {"id": "scales", "initial": "Idle", "states": {"Idle": {"on": {"put": "Used"}}, "Used": {}}}


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.stop()


@pytest.fixture
def worker(tmp_path: Path, redis_url: str, prefix: str) -> Iterator:
    """Starts a worker that sends its spans to an address."""
    (tmp_path / "traced.py").write_text(HANDLERS)
    clean = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment = clean | {"REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "PYTHONUNBUFFERED": "1"}
    started = []

    def start(collector: str) -> subprocess.Popen:
        command = [sys.executable, "-P", str(PROGRAM), "worker", "--handlers", "traced"]
        started.append(subprocess.Popen(
            command, cwd=tmp_path, env=environment | {"COLLECTOR": collector}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        ))  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def machines(engine):
    for definition in (SCALES, PARCEL, ORDER):
        engine.publish(definition)
    engine.create("order", "o")
    engine.create("scales", "s")


@pytest.fixture
def call(site, db):
    """Fires an event by the API of the site."""
    owner = get_user_model().objects.create_superuser("ann", password="x")
    bearer = {"Authorization": f"Bearer {tokens.make(owner, 'a test', tuple(RIGHTS))[1]}"}

    def fire(traceparent: str) -> httpx.Response:
        sent = {"event": "pay", "payload": {"card": SECRET}}
        headers = bearer | {"traceparent": traceparent}
        return httpx.post(
            f"{site}/api/v1/machines/order/instances/o/events", json=sent, headers=headers, timeout=60, trust_env=False
        )

    return fire


@pytest.fixture
def traced(collector, monkeypatch) -> None:
    """The site of this process sends its spans, too."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(collector.url)))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))


def test_a_collector_gets_one_trace_of_all_parts(engine, machines, traced, call, worker, collector):
    answer = call(f"00-{TRACE}-{SENDER}-01")
    assert answer.status_code == 200, answer.text
    process = worker(collector.url)
    eventually(lambda: engine.get("order", "o").state == "Closed", "the order is closed")
    chain = [
        ("POST /api/v1/machines/<name:machine>/instances/<instance:id>/events", {}),
        ("step order", {"event": "pay", "from": "Cart", "to": "Paying"}),
        ("process charge", {"handler": "charge", "machine": "order"}),
        ("step order", {"event": "done.invoke.Paying", "from": "Paying", "to": "Packing"}),
        ("process parcel", {"event": "(create)", "to": "Open", "message": "start"}),
        ("process weigh", {"handler": "weigh", "machine": "parcel"}),
        ("step parcel", {"event": "done.invoke.Open", "from": "Open", "to": "Shut"}),
        ("process order", {"event": "done.invoke.box", "from": "Packing", "to": "Sent", "message": "done"}),
        ("process break", {"handler": "break", "machine": "order"}),
    ]
    eventually(lambda: all(collector.find(name, **facts) for name, facts in chain), "the spans have come")
    before, linked = SENDER, ("process",)
    for name, facts in chain:
        span = collector.find(name, **facts)
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, before), name
        assert [link.span_id.hex() for link in span.links] == ([before] if name.startswith(linked) else []), name
        before = span.span_id.hex()
    put = collector.find("step scales", event="put")
    assert put.parent_span_id == collector.find("process weigh").span_id
    assert collector.find("process break").status.message == "LookupError"
    assert len({span.trace_id for span in collector.spans}) == 1
    assert SECRET not in str(list(collector.spans))
    assert all("url.path" not in read_facts(span) for span in collector.spans)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert f"FAILED IN {TRACE} " in said


def test_a_line_of_the_sites_log_names_the_trace(machines, traced, call, monkeypatch):
    (console,) = (each for each in logging.getLogger().handlers if isinstance(each.formatter, Line))
    monkeypatch.setattr(console, "stream", io.StringIO())
    assert [call(f"00-{TRACE}-{SENDER}-01").status_code for _ in range(2)] == [200, 422]
    lines = [line for line in console.stream.getvalue().splitlines() if "Unprocessable" in line]
    assert [f" trace {TRACE}]" in line for line in lines] == [True], lines


@pytest.mark.parametrize("given", ["0" * 10_240, f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{SENDER}-01", "00-é-1-01"])
def test_a_damaged_header_is_ignored(engine, machines, traced, call, collector, given):
    answer = call(given.encode("latin-1"))
    assert (answer.status_code, engine.get("order", "o").state) == (200, "Paying")
    step = collector.find("step order", event="pay")
    (request,) = [span for span in collector.spans if span.span_id == step.parent_span_id]
    assert (request.parent_span_id, request.trace_id.hex() == TRACE) == (b"", False)


def test_a_collector_that_is_away_costs_no_job(engine, machines, worker):
    (nobody,) = free_ports(1)
    process = worker(f"http://127.0.0.1:{nobody}/v1/traces")
    engine.fire("order", "o", "pay", {"card": SECRET})
    eventually(lambda: engine.get("order", "o").state == "Closed", "the order is closed")
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
