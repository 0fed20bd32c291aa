"""Probes come by the address of a pod: they are answered whatever host they name, and no other page is."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.configuration import configure
from tests.security.requests.test_headers import check

FOREIGN = ("10.42.0.7:8000", "evil.example", "[fd00::7]:8000", "not a host", "box.internal")
TOKEN = "a-token-of-sixteen"


@pytest.fixture
def ask(site):
    with httpx.Client(base_url=site, timeout=60) as http:
        yield lambda path, host, **headers: http.get(path, headers={"Host": host, **headers})


@pytest.mark.parametrize("host", FOREIGN)
def test_probes_are_answered_for_any_host_and_other_addresses_are_not(ask, engine, host):
    for path, status in (("/healthz", "ok"), ("/healthz?process", "ok"), ("/readyz", "ready")):
        answer = ask(path, host)
        assert (answer.status_code, answer.json()["status"]) == (200, status), answer.text
        check(answer)
        assert host not in answer.text
    paths = (
        "/",
        "/accounts/login/",
        "/api/v1/machines",
        "/metrics",
        "/static/signalbox/js/shared/base.js",
        "/healthz/",
        "/readyz/x",
    )
    for path in paths:
        assert ask(path, host).status_code == 400, path


def test_a_request_without_a_host_is_a_probe_as_well(site, engine):
    where = urlsplit(site)
    with socket.create_connection((where.hostname, where.port), timeout=60) as one:
        one.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert one.recv(4096).split(b"\r\n")[0].endswith(b"200 OK")


def test_metrics_are_read_from_any_host_with_the_token_or_where_they_are_open(ask, engine, settings):
    configure(settings, METRICS_TOKEN=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert ask("/metrics", FOREIGN[0], **bearer).status_code == 200
    assert ask("/metrics", FOREIGN[0], Authorization="Bearer another").status_code == 400
    assert ask("/", FOREIGN[0], **bearer).status_code == 400
    configure(settings, METRICS="open")
    assert ask("/metrics", FOREIGN[0]).status_code == 200
    configure(settings, METRICS="off")
    assert ask("/metrics", FOREIGN[0], **bearer).status_code == 400


def test_a_process_that_runs_is_alive_while_its_stores_are_away(site, settings):
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    answer = httpx.get(f"{site}/healthz?process", timeout=60)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "process": "ok"})
    assert httpx.get(f"{site}/healthz", timeout=60).status_code == 503
