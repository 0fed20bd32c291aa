"""/metrics: what Prometheus reads there is what the engine counts."""

from __future__ import annotations

import base64
import time
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connections
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from dashboard.serving.metrics.families import Snapshot, registry
from machines.conf import conf
from machines.duties import DUTIES
from machines.engine import Refused, WorkerInfo
from machines.engine.rates import estimate_quantile
from machines.models import Approval, SamplingTurn
from machines.patterns import Locks
from tests.configuration import configure

TOKEN = "a-token-of-some-length"
ERRAND = {
    "id": "errand",
    "initial": "Idle",
    "states": {
        "Idle": {"sla": "1m", "on": {"start": "Busy"}},
        "Busy": {"invoke": {"src": "work", "onDone": "Idle"}, "on": {"stop": "Idle"}, "after": {"9h": "Idle"}},
    },
}


class Read(dict):
    """Sample name -> {labels' values, sorted by label: value}."""

    def __init__(self, text: str) -> None:
        self.types = {}
        for family in text_string_to_metric_families(text):
            self.types[family.name] = family.type
            for sample in family.samples:
                slot = tuple(value for _, value in sorted(sample.labels.items()))
                assert slot not in self.setdefault(sample.name, {}), "a series stands twice"
                self[sample.name][slot] = sample.value

    def of(self, name: str, machine: str = "errand") -> dict:
        """Of one machine, by the other labels' values."""
        found = self[f"signalbox_{name}"]
        return {tuple(v for v in slot if v != machine): value for slot, value in found.items() if machine in slot}


@pytest.fixture
def opened(settings, prefix):
    configure(settings, METRICS="open")


@pytest.fixture
def scraped(opened, db):
    def scrape() -> Read:
        answer = Client().get("/metrics")
        assert answer.status_code == 200
        assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
        return Read(answer.content.decode())

    return scrape


@pytest.fixture
def errands(engine):
    """Six instances after a busy hour: of their jobs some are done, some failed, some wait."""
    now = int(time.time() * 1000)
    engine.publish(ERRAND)
    for number in range(6):
        engine.create("errand", f"e{number}", now=now - 3_600_000)
        engine.fire("errand", f"e{number}", "start", now=now - 1_800_000 + number)
    taken = engine.take("errand", "work", "w", count=4, now=now - 1_700_000)
    engine.complete(taken[0], now=now - 1_600_000)
    engine.complete(taken[1], now=now - 1_690_000)
    engine.fail(taken[2], "no", retry=False, now=now - 1_600_000)
    engine.pause("errand", "work", actor="ann", reason="x")
    return now


def test_states_and_transitions_are_what_the_engine_counts(engine, errands, scraped):
    read, live = scraped(), engine.live("errand")
    assert read["signalbox_up"] == {(): 1}
    assert read.of("machine_readable") == {(): 1}
    assert read.of("instances") == {(state,): n for state, n in engine.counts("errand").items()}
    assert read.of("instances_present") == {(): 6}
    assert read.of("sla_breaches") == {("Idle",): 2} == {(s,): n for s, n in live.breaches.items()}
    assert read.of("transitions_total") == {(): sum(live.flow.values())}
    assert read.of("edge_transitions_total") == {
        (edge, version): n for (version, _, edge), n in ((name.partition(":"), n) for name, n in live.flow.items())
    }
    assert read.of("timers_pending") == {(): live.timers} == {(): 4}
    assert read.of("outbox_length") == {(): 0}
    assert 1700 < read.of("oldest_seconds")[("Busy",)] < 1900
    assert (read.types["signalbox_transitions"], read.types["signalbox_instances"]) == ("counter", "gauge")


def test_queues_are_what_the_engine_counts(engine, errands, scraped):
    read, stats = scraped(), engine.stats("errand")["work"]
    assert read.of("jobs") == {(place, "work"): n for place, n in stats.depth.items()}
    for name, count in {
        "jobs_enqueued": stats.enqueued,
        "jobs_taken": stats.taken,
        "jobs_completed": stats.completed,
        "attempts_failed": stats.failed,
        "attempts_lost": stats.lost,
        "jobs_died": stats.died,
        "jobs_withdrawn": stats.withdrawn,
        "jobs_purged": stats.purged,
    }.items():
        assert read.of(f"{name}_total") == {("work",): count}, name
    assert (stats.enqueued, stats.completed, stats.died) == (6, 2, 1)
    assert read.of("queue_paused") == {("work",): 1}
    assert 1700 < read.of("queue_oldest_ready_seconds")[("work",)] < 1900


def test_times_are_histograms_that_say_what_the_engine_says(engine, errands, scraped):
    read, stats = scraped(), engine.stats("errand")["work"]
    for name, counted in (("job_wait_seconds", stats.waits), ("job_run_seconds", stats.runs)):
        assert read.types[f"signalbox_{name}"] == "histogram"
        buckets = {bound: n for (bound, _), n in read.of(f"{name}_bucket").items()}
        heights = [buckets[bound] for bound in sorted(buckets, key=float)]
        assert heights == sorted(heights)
        assert buckets["+Inf"] == sum(counted.values()) == read.of(f"{name}_count")[("work",)]
        for magnitude in range(23):
            assert buckets[str(2**magnitude / 1000)] == sum(n for m, n in counted.items() if m <= magnitude)
        half = min(float(bound) for bound, n in buckets.items() if n >= buckets["+Inf"] / 2)
        assert estimate_quantile(counted, 0.5) <= half * 1000 <= 2 * estimate_quantile(counted, 0.5)


def test_a_time_beyond_the_last_bucket_is_in_the_whole(engine, opened, db, scraped):
    engine.publish(ERRAND)
    engine.create("errand", "x", now=1_000)
    engine.fire("errand", "x", "start", now=1_000)
    engine.take("errand", "work", "w", now=1_000 + 5 * 3_600_000)
    found = scraped().of("job_wait_seconds_bucket")
    assert found[("+Inf", "work")] == 1
    assert found[(str(2**22 / 1000), "work")] == 0


def test_what_is_refused_breached_waited_for_and_measured_is_told(engine, errands, scraped):
    for event, times in (("stop", 2), ("nonsense", 1)):
        for _ in range(times):
            with pytest.raises(Refused):
                engine.fire("errand", "e0", event)
    assert "signalbox_statistics_age_seconds" not in scraped()
    SamplingTurn.objects.create(pk=1, number=1, at=errands - 90_000, began=1)
    Approval.objects.create(
        machine="errand", instance="e1", action="force", asker="ann", expires_at=timezone.now() + timedelta(hours=1)
    )
    read = scraped()
    assert read.of("events_refused_total") == {("stop",): 2, ("",): 1}
    assert read.of("approvals_waiting") == {(): 1}
    assert read.of("timers_failing") == {(): 0}
    assert 89 < read["signalbox_statistics_age_seconds"][()] < 150
    assert sum(read.of("sla_breaches").values()) == sum(engine.live("errand").breaches.values()) == 2
    told = Client().get("/metrics").content.decode()
    assert all(f"# HELP {name}" in told and f"# TYPE {name}" in told for name in read.types if name in read)


def test_steps_that_cannot_be_compiled_are_counted(engine, scraped):
    names = {"p": 33, "a": 67}  # more changes of data than one function of Lua can write
    properties = {f"{name}{n}": {"type": "integer"} for name, count in names.items() for n in range(count)}
    for n in range(33):
        properties[f"p{n}"]["default"] = 0
    wide = {"target": "B", "actions": [{"set": {name: "7"}} for name in properties]}
    states = {"A": {"on": {"go": wide}}, "B": {}}
    context = {"type": "object", "properties": properties}
    engine.publish({"id": "wide", "initial": "A", "context": context, "states": states})
    before = scraped().of("compile_failures_total", "wide")[()]
    for id in "xy":
        engine.create("wide", id)
        assert engine.fire("wide", id, "go").state == "B"
    read = scraped()
    assert read.of("compile_failures_total", "wide")[()] == before + 1 == engine.live("wide").compile_failures
    assert read.types["signalbox_compile_failures"] == "counter"


def test_only_edges_of_the_current_version_are_told_apart(engine, errands, scraped):
    engine.publish(ERRAND | {"description": "another"})
    engine.create("errand", "new")
    engine.fire("errand", "new", "start")
    read = scraped()
    assert {version for _, version in read.of("edge_transitions_total")} == {"2"}
    assert sum(read.of("edge_transitions_total").values()) == 1
    assert read.of("transitions_total")[()] > 1


def test_workers_are_counted_by_what_they_do(engine, scraped):
    now = int(time.time() * 1000)
    engine.publish(ERRAND)
    for id, status, hand in (("a", "working", 3), ("b", "quiet", 1), ("c", "working", 0)):
        engine.beat(WorkerInfo(id, "box", 1, [], in_hand=hand, started=now, seen=now, status=status))
    engine.client.hset(engine.keys.worker("c"), "seen", now - 20_000)
    read = scraped()
    assert read["signalbox_workers"] == {
        ("working",): 1, ("blocked",): 0, ("quiet",): 1, ("exhausted",): 0, ("stopping",): 0, ("silent",): 1,
    }  # fmt: skip
    assert read["signalbox_jobs_in_hand"] == {(): 4}
    assert read["signalbox_websocket_clients"] == {(): 0}


def test_odd_names_come_back_as_they_are(engine, scraped):
    state = 'a "b" \\ é {}'
    engine.publish({"id": "odd", "initial": state, "states": {state: {"on": {"x": state}}}})
    engine.create("odd", "x")
    assert scraped().of("instances", "odd") == {(state,): 1}


def test_a_machine_that_cannot_be_read_is_told_and_hides_no_other(engine, errands, scraped):
    engine.publish(ERRAND | {"id": "broken"})
    engine.client.set(engine.keys.partition("broken").state("Idle"), "foreign")
    read = scraped()
    assert read["signalbox_machine_readable"] == {("errand",): 1, ("broken",): 0}
    assert read.of("instances_present") == {(): 6}


def test_nothing_published_is_no_error(scraped):
    read = scraped()
    assert read["signalbox_up"] == {(): 1}
    assert read["signalbox_jobs_in_hand"] == {(): 0}


def test_scrapes_have_nothing_in_common():
    first, second = (registry(Snapshot(None)) for _ in range(2))
    assert first is not second
    assert [metric.name for metric in second.collect()] == ["signalbox_up"]


def test_redis_away_is_a_503_that_says_so(opened, settings):
    configure(settings, REDIS_URL="unix:///nonexistent/signalbox.sock")
    answer = Client().get("/metrics")
    assert answer.status_code == 503
    assert Read(answer.content.decode()) == {"signalbox_up": {(): 0}}


# Who may read them


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def code(client: Client | None = None, **headers: str) -> int:
    return (client or Client()).get("/metrics", headers=headers).status_code


def signed_in(db, *codenames: str) -> Client:
    user = get_user_model().objects.create_user(f"user-{len(codenames)}", password="let me in")
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def test_by_default_one_has_to_be_signed_in_and_may_look(prefix, db, settings):
    assert (conf.METRICS, conf.METRICS_TOKEN) == ("login", "")
    assert code() == 401
    assert Client().get("/metrics")["WWW-Authenticate"].startswith("Bearer")
    assert code(signed_in(db)) == 403
    assert code(signed_in(db, "view_machine")) == 200
    assert code(**bearer("")) == code(**bearer("None")) == 401


def test_a_token_opens_it(prefix, db, settings):
    configure(settings, METRICS_TOKEN=TOKEN)
    assert code(**bearer(TOKEN)) == 200
    basic = base64.b64encode(f"x:{TOKEN}".encode()).decode()
    for wrong in (
        bearer(TOKEN[:-1]),
        bearer(TOKEN + "x"),
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {basic}"},
    ):
        assert code(**wrong) == 401, wrong
    assert code(**bearer("\u00e9" * 16)) == 401
    assert Client().get("/metrics", {"token": TOKEN}).status_code == 401


def test_with_a_token_alone_nobody_else_may(prefix, db, settings):
    configure(settings, METRICS="token", METRICS_TOKEN=TOKEN)
    assert code(signed_in(db, "view_machine")) == 401
    assert code(**bearer(TOKEN)) == 200


def test_switched_off_it_is_not_there(prefix, db, settings):
    configure(settings, METRICS="off", METRICS_TOKEN=TOKEN)
    assert code(**bearer(TOKEN)) == 404
    assert code(signed_in(db, "view_machine")) == 404


@pytest.fixture
def no_database(django_db_blocker, monkeypatch):
    """The database that the settings name is not there."""
    connection = connections["default"]
    monkeypatch.setitem(connection.settings_dict, "NAME", "/nonexistent/signalbox.sqlite3")
    with django_db_blocker.unblock():
        connection.close()
        yield
        connection.close()


def test_a_token_needs_neither_session_nor_database(prefix, settings, no_database):
    configure(settings, METRICS_TOKEN=TOKEN)
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    answer = Client().get("/metrics", headers=bearer(TOKEN))
    read = Read(answer.content.decode())
    assert (answer.status_code, read["signalbox_up"]) == (200, {(): 1})
    assert not {"signalbox_approvals_waiting", "signalbox_statistics_age_seconds"} & set(read)


def test_it_is_read_and_nothing_else(opened, db):
    assert Client().post("/metrics").status_code == 405
    assert "no-store" in Client().get("/metrics")["Cache-Control"]


def test_a_duty_that_no_worker_has_can_be_seen(scraped, engine):
    Locks(engine.client, engine.keys.prefix).lock("house.sampler", owner="w").acquire()
    read = scraped()["signalbox_duty_kept"]
    assert read[("sampler",)] == 1
    assert set(read) == {(duty,) for duty in DUTIES}
    assert sum(read.values()) == 1
