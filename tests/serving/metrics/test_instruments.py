"""Metrics of OpenTelemetry: what an SDK exports is what ``/metrics`` says, by the same names."""

from __future__ import annotations

import pytest
from django.test import Client
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from dashboard.serving.metrics import instruments
from dashboard.serving.metrics.families import list_families, list_series
from machines.engine import EngineFault, EngineUnavailable
from tests.configuration import configure

ERRAND = {
    "id": "errand",
    "initial": "Idle",
    "states": {"Idle": {"on": {"start": "Busy"}}, "Busy": {"invoke": {"src": "work", "onDone": "Idle"}}},
}
OF_THE_MOMENT = {"signalbox_oldest_seconds", "signalbox_queue_oldest_ready_seconds", "signalbox_statistics_age_seconds"}


class Exported:
    """What an SDK would send now: name -> {labels: value}."""

    def __init__(self, monkeypatch) -> None:
        self._reader = InMemoryMetricReader()
        self._provider = MeterProvider([self._reader], shutdown_on_exit=False)
        monkeypatch.setattr(metrics, "get_meter", self._provider.get_meter)
        monkeypatch.setattr(instruments, "KEPT", 0.0)
        instruments.register()

    def read(self):
        data = self._reader.get_metrics_data()
        found = {}
        for scope in data.resource_metrics[0].scope_metrics if data else ():
            for metric in scope.metrics:
                found[metric.name] = {
                    tuple(sorted(point.attributes.items())): point.value for point in metric.data.data_points
                }
        return found


@pytest.fixture
def exported(settings, prefix, db, monkeypatch):
    configure(settings, METRICS="open")
    return Exported(monkeypatch)


def read_page():
    found = {}
    for family in text_string_to_metric_families(Client().get("/metrics").content.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_they_are_those_of_the_page(engine, exported):
    engine.publish(ERRAND)
    for number in range(3):
        engine.create("errand", f"e{number}")
        engine.fire("errand", f"e{number}", "start")
    (job,) = engine.take("errand", "work", "w", count=1)
    engine.complete(job)
    sent, page = exported.read(), read_page()
    assert set(sent) == set(page)
    assert set(sent) <= {name for family in list_families() for name in list_series(family)}
    assert {name: each for name, each in sent.items() if name not in OF_THE_MOMENT} == {
        name: each for name, each in page.items() if name not in OF_THE_MOMENT
    }
    assert sent["signalbox_jobs_completed_total"] == {(("machine", "errand"), ("queue", "work")): 1}


@pytest.mark.parametrize("error", [EngineUnavailable("away"), EngineFault("no library")])
def test_a_redis_that_cannot_be_read_is_said_and_asked_once(exported, monkeypatch, error):
    asked = []

    def fail(scope):
        asked.append(scope)
        raise error

    monkeypatch.setattr(instruments, "read_snapshot", fail)
    monkeypatch.setattr(instruments, "KEPT", 60.0)
    assert exported.read() == {"signalbox_up": {(): 0}}
    assert len(asked) == 1


def test_off_is_off(settings, prefix, db, monkeypatch):
    configure(settings, METRICS="off")
    assert Exported(monkeypatch).read() == {}
