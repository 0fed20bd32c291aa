"""When people and tokens were last seen: noted while a request is answered, written in batches, each use once."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.utils import timezone

from machines.conf import conf
from machines.models import LastSeen, Receipt, Token
from machines.people import last_seen, tokens
from machines.people.last_seen import Noting, SeenFlush
from tests.configuration import configure
from tests.patterns.rewinding import older, rewind


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def noting(monkeypatch, clock) -> Noting:
    noting = Noting(clock)
    monkeypatch.setattr(last_seen, "noting", noting)
    return noting


@pytest.fixture
def ann(engine, db):
    ann = get_user_model().objects.create_user("ann", is_staff=True)
    ann.user_permissions.add(Permission.objects.get(codename="view_machine"))
    return ann


def flush() -> int:
    return last_seen.buffer().flush(last_seen.write, limit=500)


def test_a_person_is_noted_once_a_minute_with_the_requests_since(ann, noting, clock):
    for second in (0, 1, 59, 60, 61):
        clock.now = 1000.0 + second
        noting.person(ann.pk)
    assert last_seen.buffer().size() == 1
    begin = timezone.now()
    flush()
    row = LastSeen.objects.get()
    assert (row.user, row.requests) == (ann, 4)  # of the last one nothing is known yet
    assert abs(row.at - begin) < timedelta(minutes=1)
    clock.now += 60
    noting.person(ann.pk)
    flush()
    assert LastSeen.objects.get().requests == 6


def test_pages_the_api_and_tokens_say_who_was_there(ann, noting, clock):
    _, text = tokens.make(ann, "own", ["view"])
    client = Client()
    client.force_login(ann)
    client.get("/account/")
    client.get("/api/v1/me")
    client.get("/healthz")
    clock.now += 60
    client.get("/api/v1/me")
    for _ in range(3):
        assert Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me").status_code == 200
    Client().get("/account/")
    assert Token.objects.get().last_used is None
    flush()
    assert (LastSeen.objects.get().user, LastSeen.objects.get().requests) == (ann, 3)
    assert (Token.objects.get().uses, Token.objects.get().last_used is None) == (3, False)
    assert "3 times" in " ".join(client.get("/account/tokens/").content.decode().split())
    staff = get_user_model().objects.create_user("staff", is_staff=True)
    client.force_login(staff)
    assert client.get("/admin/machines/lastseen/").status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert "ann" in client.get("/admin/machines/lastseen/").content.decode()


def test_what_comes_twice_counts_once_and_who_is_gone_is_left_out(engine, ann, noting, clock):
    token, _ = tokens.make(ann, "own", ["view"])
    gone = get_user_model().objects.create_user("gone")
    noting.token(token.pk)
    noting.token(token.pk)
    noting.person(gone.pk)
    noting.person(ann.pk)
    gone.delete()
    file = older(engine)
    batch = last_seen.buffer().claim()
    last_seen.write(batch)
    last_seen.write(batch)
    rewind(engine, file)
    flush()
    noting.token(token.pk)
    flush()
    assert (Token.objects.get().uses, LastSeen.objects.get().requests) == (3, 1)
    assert Receipt.objects.count() == 4
    Receipt.objects.update(at=timezone.now() - last_seen.RECEIPTS_KEPT - timedelta(seconds=1))
    assert (last_seen.prune(), Receipt.objects.count()) == (4, 0)


def test_what_others_put_there_is_left_out_and_holds_up_nobody(ann, noting):
    noting.person(ann.pk)
    at = time.time() * 1000
    for entity, n, seen_at in [
        (f"user:{2**70}", 1, at), ("user:-1", 1, at), (f"user:{ann.pk + 1}", -5, at), (f"token:{ann.pk}", 2**40, at),
        ("user:x", 1, at), ("nobody", 1, at), (f"user:{ann.pk + 2}", 1, 10**30), (f"user:{ann.pk + 3}", 1, "late"),
    ]:  # fmt: skip
        last_seen.buffer().add(entity, counters={"n": n}, fields={"at": seen_at})
    assert flush() == 9
    assert (LastSeen.objects.get().user_id, LastSeen.objects.get().requests) == (ann.pk, 1)
    assert last_seen.buffer().size() == 0


def test_entries_in_another_order_leave_the_latest_moment(ann, noting, monkeypatch):
    batches = []
    for moment in (2_000, 1_000):
        monkeypatch.setattr(time, "time", lambda moment=moment: moment)
        Noting().person(ann.pk)
        batches.append(last_seen.buffer().claim())
    for batch in batches:
        last_seen.write(batch)
    assert (LastSeen.objects.get().at.timestamp(), LastSeen.objects.get().requests) == (2_000, 2)


def test_no_request_fails_where_nothing_can_be_noted_and_redis_is_left_alone_for_a_while(ann, noting, clock, settings):
    engine_url = conf.REDIS_URL
    client = Client()
    client.force_login(ann)
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    assert client.get("/admin/password_change/").status_code == 200  # the session's Redis is there
    configure(settings, REDIS_URL=engine_url)
    clock.now += last_seen.AWAY - 1
    noting.token(1)
    assert last_seen.buffer().size() == 0
    clock.now += 1
    noting.token(1)
    assert last_seen.buffer().size() == 1


def test_the_duty_waits_for_an_entry_to_gather(transactional_db, ann, noting):
    noting.person(ann.pk)
    assert SeenFlush().once() is False
    assert SeenFlush(gather=0).once() is True
    assert LastSeen.objects.get().user == ann


def test_a_database_that_is_away_is_said_once_and_what_waits_is_written_when_it_is_back(
    transactional_db, ann, noting, caplog
):
    flusher = SeenFlush(gather=0)
    noting.person(ann.pk)
    with connection.schema_editor() as editor:
        editor.delete_model(Receipt)
    try:
        for _ in range(9):
            assert flusher.once() is False
        assert flusher.pause() > 0
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(Receipt)
    assert [record.getMessage()[:36] for record in caplog.records] == ["who was last seen waits for the data"]
    assert (flusher.once(), flusher.once()) == (True, False)
    assert LastSeen.objects.get().user == ann


def test_a_process_remembers_no_more_people_than_it_should(noting, clock, monkeypatch, engine):
    monkeypatch.setattr(last_seen, "MOST", 3)
    for pk in range(3):
        noting.person(pk)
    clock.now += 60
    noting.person(3)
    assert list(noting._people) == [3]
