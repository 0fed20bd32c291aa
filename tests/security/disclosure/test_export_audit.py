"""Each file that a person takes along, and each that was refused, stands in the audit: what, filtered how, how many."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client, RequestFactory
from django.urls import reverse

from dashboard.shared.csv_export import Export
from machines.audit.entries import record
from machines.models import AuditEntry
from tests.pages.instances.test_sensitive import SECRETS, addresses, body, having, vault
from tests.pages.table import TABLE
from tests.vault import NAME, SECRET

__all__ = ["having", "vault"]
FILES = {
    "audit-export", "bulk-results", "history-csv", "history-json", "instances-csv", "instances-json", "plan-refused",
    "try-scenario",
}  # fmt: skip


def exports(**terms: Any) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action="export", **terms).order_by("id"))


@pytest.fixture
def seer(having: Callable[..., Client]) -> Client:
    return having(reveal=True)


@pytest.mark.matrix
def test_each_address_that_sends_a_file_leaves_an_entry_and_no_other_does(vault, seer):
    wrong, files = [], set()
    for address in addresses(vault):
        answer = seer.get(address)
        body(answer)
        is_file = "attachment" in answer.get("Content-Disposition", "")
        entries = exports(request=answer["X-Request-Id"])
        if [entry.outcome for entry in entries] != ["done"] * is_file:
            wrong.append((address, entries))
        if is_file:
            files.add(answer.wsgi_request.resolver_match.url_name)
            assert entries[0].target in answer["Content-Disposition"]
    assert wrong == []
    assert files == FILES - {"plan-refused"}, "that one needs a plan"


def test_a_refused_file_leaves_an_entry(vault, stranger):
    wrong = []
    for name in sorted(FILES):
        entry, before = TABLE[name], len(exports())
        given = {"machine": NAME} if "machine" in entry.arguments else {}
        given |= {"id": vault.bulk} if name == "bulk-results" else {}
        status = stranger.get(entry.url(name, **given)).status_code
        made = [(one.actor, one.outcome, one.detail["code"]) for one in exports()[before:]]
        if (status, made) != (403, [("stranger", "refused", "SB434")]):
            wrong.append((name, status, made))
    assert wrong == []


@pytest.fixture
def stranger(db, django_user_model) -> Client:
    """A client of an account that may see nothing."""
    client = Client()
    client.force_login(django_user_model.objects.create_user("stranger", password="let me in"))
    return client


def test_the_entry_says_what_went_and_holds_no_value(vault, seer):
    body(seer.get(reverse("signalbox:instances-csv", args=[NAME]), {"query": f"card:{SECRET}", "state": "shut"}))
    body(seer.get(reverse("signalbox:history-json", args=[NAME, vault.shut])))
    record("ann", "login")
    body(seer.get(reverse("signalbox:audit-export"), {"action": "login"}))
    found = exports(outcome="done")
    assert [secret for secret in SECRETS if secret in str([entry.detail for entry in found])] == []
    history, audit = found[-2:]
    assert (history.machine, history.instance, history.target) == (
        NAME,
        vault.shut,
        f"{NAME}-{vault.shut}-history.json",
    )
    assert history.detail["count"] == len(
        seer.get(f"/api/v1/machines/{NAME}/instances/{vault.shut}/history").json()["items"]
    )
    assert "payload" in history.detail["fields"]
    assert (audit.detail["filter"], audit.detail["count"]) == ({"action": "login"}, 1)
    assert audit.target.startswith("audit-")


def test_a_sensitive_term_of_the_filter_is_masked(vault, seer):
    request = RequestFactory().get("/", {"query": f"card:{SECRET}", "state": "shut"})
    request.user = seer.get("/").wsgi_request.user
    Export(request, ["id"], about={"machine": NAME}).write("a.csv")
    assert exports()[-1].detail["filter"] == {"query": "•••", "state": "shut"}


def test_a_file_that_breaks_off_leaves_an_entry_of_what_was_sent(vault, seer):
    request = RequestFactory().get("/")
    request.user = seer.get("/").wsgi_request.user
    export = Export(request, ["id"])
    sent = export.follow((str(rows) for rows in export.count([[1, 2], [3]])), "a.csv")
    next(sent)
    sent.close()
    assert [(entry.outcome, entry.detail["count"]) for entry in exports()] == [("failed", 2)]


@pytest.mark.django_db(transaction=True)
def test_a_file_of_the_asynchronous_server_leaves_an_entry(vault, having, seer):
    user = seer.get("/").wsgi_request.user

    async def ask(whole: bool) -> None:
        client = AsyncClient()
        await client.aforce_login(user)
        answer = await client.get(reverse("signalbox:history-csv", args=[NAME, vault.shut]))
        async for _ in answer.streaming_content:
            if not whole:
                break
        del answer, _  # as a server does whose reader has gone; the loop closes what is left
        gc.collect()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    async_to_sync(ask)(whole=True)
    assert [entry.outcome for entry in exports()] == ["done"]
    async_to_sync(ask)(whole=False)
    assert [entry.outcome for entry in exports()] == ["done", "failed"]
