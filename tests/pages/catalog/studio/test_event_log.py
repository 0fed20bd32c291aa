"""A log of a process that has no machine becomes a draft in the editor."""

from __future__ import annotations

import html

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from dashboard.catalog.studio import checks
from tests.cases import for_each

NEW = "/machines/new/"
LOG = (
    "case,activity,time\n1,order,2026-01-01T08:00\n1,pay,2026-01-01T09:00\n2,order,2026-01-01T08:00\n2,pay,2026-01-02\n"
)


@pytest.fixture
def publisher(as_, db):
    return as_("publisher")


def send(client, text: bytes):
    return client.post(NEW, {"log": SimpleUploadedFile("shop orders.csv", text)})


def test_a_log_opens_as_a_definition(publisher):
    answer = send(publisher, LOG.encode())
    page = html.unescape(answer.content.decode())
    assert answer.status_code == 200
    assert '"id": "shop_orders"' in page
    assert '"pay": {' in page
    assert "100% of the steps of 2 cases" in page


@for_each("text", [LOG.replace("09:00", "07:00").encode(), b"a,b\n1,2\n", b"\xff\xfe", b"<log><trace>"])
def test_a_log_that_makes_no_sense_says_why(publisher, text):
    answer = send(publisher, text)
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "SB693" in page or "The log is not UTF-8." in page


def test_it_takes_the_right_to_publish(as_, db):
    assert send(as_("viewer"), LOG.encode()).status_code == 403


def test_too_many_logs_have_to_wait(publisher, monkeypatch):
    monkeypatch.setattr(checks, "CHECKS", 1)
    assert [send(publisher, LOG.encode()).status_code for _ in range(2)] == [200, 429]
