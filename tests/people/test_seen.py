"""When people and tokens were last seen: recorded once a minute in each process, while a request is answered."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, nullcontext
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection, connections, transaction
from django.test import Client
from django.utils import timezone

from machines.models import LastSeen, Token
from machines.people import last_seen, tokens
from machines.people.last_seen import Noting


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


def test_a_person_is_recorded_once_a_minute_with_the_requests_since(ann, noting, clock):
    begin = timezone.now()
    for second in (0, 1, 59, 60, 61):
        clock.now = 1000.0 + second
        noting.person(ann.pk)
    row = LastSeen.objects.get()
    assert (row.user, row.requests) == (ann, 4)  # of the last one nothing is known yet
    assert abs(row.at - begin) < timedelta(minutes=1)
    clock.now += 60
    noting.person(ann.pk)
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
    assert (Token.objects.get().uses, Token.objects.get().last_used) == (0, None)
    for _ in range(3):
        clock.now += 60
        assert Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me").status_code == 200
    Client().get("/account/")
    assert (LastSeen.objects.get().user, LastSeen.objects.get().requests) == (ann, 3)
    assert (Token.objects.get().uses, Token.objects.get().last_used is None) == (3, False)
    assert "3 times" in " ".join(client.get("/account/tokens/").content.decode().split())
    staff = get_user_model().objects.create_user("staff", is_staff=True)
    client.force_login(staff)
    assert client.get("/admin/machines/lastseen/").status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert "ann" in client.get("/admin/machines/lastseen/").content.decode()


def test_a_person_and_a_token_of_the_same_number_are_counted_apart(ann, noting):
    token, _ = tokens.make(ann, "own", ["view"])
    noting.token(token.pk)
    noting.person(ann.pk)
    assert (Token.objects.get().uses, LastSeen.objects.get().requests) == (1, 1)


@pytest.mark.parametrize("on_commit", [False, True], ids=["alone", "in a transaction"])
def test_no_request_fails_where_nothing_can_be_recorded_and_the_database_is_left_alone_for_a_while(
    ann, noting, clock, on_commit
):
    refused = []

    def refuse(execute, sql, params, many, context):
        if LastSeen._meta.db_table not in sql:
            return execute(sql, params, many, context)
        refused.append(sql)
        raise OperationalError("disk I/O error")

    with connection.execute_wrapper(refuse), transaction.atomic() if on_commit else nullcontext():
        for _ in range(2):
            noting.person(ann.pk)
        assert get_user_model().objects.get() == ann  # the transaction goes on
    clock.now += last_seen.AWAY - 1
    noting.person(ann.pk)
    assert (len(refused), LastSeen.objects.count()) == (1, 0)
    clock.now += 1
    noting.person(ann.pk)
    assert LastSeen.objects.get().requests == 4


def test_a_page_does_not_wait_for_another_process_that_holds_the_write_lock_of_sqlite(
    transactional_db, ann, noting, clock
):
    if connection.vendor != "sqlite":
        return  # servers lock rows
    waits: list[int] = []

    def read_wait(execute, sql, params, many, context):
        waits.append(context["connection"].connection.execute("PRAGMA busy_timeout").fetchone()[0])
        return execute(sql, params, many, context)

    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with connection.execute_wrapper(read_wait):
            noting.person(ann.pk)
    assert waits == [round(last_seen.LOCK_WAIT * 1000)]
    assert connection.connection.execute("PRAGMA busy_timeout").fetchone()[0] == 20_000
    clock.now += last_seen.AWAY
    noting.person(ann.pk)
    assert LastSeen.objects.get().requests == 2


def test_processes_that_record_at_once_lose_nothing(transactional_db, ann, clock):
    ready = threading.Barrier(4)
    notings = [Noting(clock) for _ in range(4)]

    def work(noting: Noting) -> None:
        ready.wait(60)
        try:
            noting.person(ann.pk)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=[noting]) for noting in notings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    clock.now += 60
    for noting in notings:
        noting.person(ann.pk)
    assert LastSeen.objects.get().requests == 8


def test_a_process_remembers_no_more_people_than_it_should(ann, noting, clock, monkeypatch):
    monkeypatch.setattr(last_seen, "MOST", 3)
    people = [get_user_model().objects.create_user(name) for name in "abcd"]
    for one in people[:3]:
        noting.person(one.pk)
    clock.now += 60
    noting.person(people[3].pk)
    assert [pk for _, pk in noting._held] == [people[3].pk]
