"""Metrics of OpenTelemetry: those of ``/metrics``, by the same names. The host's SDK asks for them when it exports."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.db import close_old_connections
from prometheus_client.samples import Sample

from machines.conf import conf
from machines.engine import SignalboxError
from machines.people.permissions import EVERYTHING

from .families import Snapshot, list_families, list_series
from .views import read_snapshot

log = logging.getLogger(__name__)

KEPT = 1.0  # seconds for which one reading serves: an export asks for each metric by itself


def register() -> None:
    """Register an instrument for each metric, unless ``METRICS`` is off or the extra ``otel`` is not installed.

    Each web process of Signalbox's own site does so. A project that mounts the room calls this in one process.
    """
    try:
        from opentelemetry.metrics import get_meter
    except ImportError:
        return
    if conf.METRICS == "off":
        return
    meter, reading = get_meter("signalbox"), Reading()
    for family in list_families():
        make = meter.create_observable_counter if family.type == "counter" else meter.create_observable_gauge
        for name in list_series(family):
            make(name, [partial(reading.observe, name)], description=family.documentation)


class Reading:
    """What ``/metrics`` reads, shared by all instruments of an export."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._samples: dict[str, list[Sample]] = {}

    def observe(self, name: str, _: Any) -> Iterator[Any]:
        """Yield the values of one series."""
        from opentelemetry.metrics import Observation

        for sample in self._read().get(name, ()):
            yield Observation(sample.value, sample.labels)

    def _read(self) -> dict[str, list[Sample]]:
        """Return the samples by the name of their series."""
        with self._lock:
            if time.monotonic() >= self._until:
                try:
                    snapshot = read_snapshot(EVERYTHING)
                except SignalboxError as error:
                    log.warning("metrics: %s", error)
                    snapshot = Snapshot(None)
                finally:
                    close_old_connections()  # of the exporter's thread
                found: defaultdict[str, list[Sample]] = defaultdict(list)
                for family in snapshot.collect():
                    for sample in family.samples:
                        found[sample.name].append(sample)
                self._samples = found
                self._until = time.monotonic() + KEPT
            return self._samples
