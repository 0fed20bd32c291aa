"""What is not yours answers as what is not there: the same code, the same headers, the same bytes.

Before two answers are compared, what was asked for is taken out of them, and what each answer has of its own: its
nonces, its request, its moment.
"""

from __future__ import annotations

import re
from itertools import cycle
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils.html import escape

from dashboard.models import SavedView
from machines.models import AuditEntry, Machine
from machines.people import tokens
from tests.api.table import TABLE as OPERATIONS_TABLE
from tests.pages.table import ALL, MACHINE, TABLE
from tests.security.people import BY_NAME, Kind
from tests.security.world import Answer, World

from .test_api import send

OF_ONE_ANSWER = {"Content-Length", "Expires", "Last-Modified", "X-Request-Id", "Date", "RateLimit", "Server-Timing"}
OWN = re.compile(
    r"nonce[-=]\"?[\w+/=-]+|csrfmiddlewaretoken\" value=\"\w+|[0-9a-z]{13}(?=[\"<\\ ])|\d{4}-\d\d-\d\dT[\d:.+Z]+|\d{13}"
)
KINDS = [BY_NAME[name] for name in ("everything elsewhere", "fires without view")]


def bare(answer: Answer, *asked: str) -> tuple[int, dict[str, str], str]:
    """An answer without what was asked for and without what only this one has."""
    written = [form for text in asked for form in (text, quote(text), quote(text, safe=""), escape(text))]
    wanted = re.compile("|".join(re.escape(text) for text in sorted(set(written), key=len, reverse=True)))
    headers = {name: text for name, text in answer.headers.items() if name not in OF_ONE_ANSWER}

    def cut(text: str) -> str:
        return OWN.sub("", wanted.sub("ASKED", text))

    return answer.status, {name: cut(text) for name, text in headers.items()}, cut(answer.text)


def others(name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Arguments of the same address for things that are not there."""
    found = [arguments | {"machine": "nothing"}] if "machine" in arguments else []
    if "id" in arguments:
        numbered = name.startswith(("approval", "webhook", "alarm-route", "draft", "plan", "error"))
        missing = "7777" if numbered else "0-7777" if name.startswith("job") else "ghost-1"
        found.append(arguments | {"id": missing})
    if "name" in arguments:
        found.append(arguments | {"name": "ghost-1"})
    if "queue" in arguments:
        found.append(arguments | {"queue": "nothing"})
    return found


@pytest.mark.parametrize("method", ["get", "post"])
def test_pages_of_machines_out_of_scope(world: World, visitors: dict[Kind, Any], method: str):
    """The two kinds take turns: one function, ``check_right``, looks at either before each of these pages."""
    compared, wrong = 0, []
    pages = [(name, entry) for name, entry in TABLE.items() if entry.of in (MACHINE, ALL) and entry.arguments]
    for (name, entry), kind in zip(pages, cycle(KINDS), strict=False):
        asked = [entry.arguments, *others(name, entry.arguments)]
        found = []
        for arguments in asked:
            address = reverse(f"signalbox:{name}", kwargs=arguments) + entry.query
            answer = world.ask(visitors[kind], method, address, follow=True)
            texts = [str(text) for text in arguments.values() if len(str(text)) > 3]
            found.append(bare(answer, address, *texts))
        compared += len(found) - 1
        wrong += [f"{name} {arguments}" for arguments, one in zip(asked, found, strict=True) if one != found[0]]
        assert found[0][0] == 403, name
    assert wrong == []
    assert compared > 70


NOTHING = (
    ("/machines/door", "/machines/nothing"),
    ("/bulks/b1", "/bulks/nothing"),
    ("/approvals/{asked}", "/approvals/7777"),
    ("/schedules/nightly", "/schedules/nothing"),
    ("/drafts/{draft}", "/drafts/7777"),
    ("/plans/{plan}", "/plans/7777"),
    ("/instances/front", "/instances/ghost-1"),
    ("/queues/oiling", "/queues/nothing"),
    ("/jobs/0-1", "/jobs/0-7777"),
    ("/webhooks/{hook}", "/webhooks/7777"),
    ("/errors/{failure}", "/errors/7777"),
)


@pytest.mark.parametrize("kind", [*KINDS, BY_NAME["token for elsewhere"]], ids=str)
def test_operations_on_machines_out_of_scope(world: World, visitors: dict[Kind, Any], kind: Kind):
    compared, wrong = 0, []
    with world.standing(
        "worker", "bulk", "schedule", "asked", "draft", "plan", "hook", "view", "key", "locked", "failure"
    ) as filled:
        for name, case in OPERATIONS_TABLE.items():
            paths = [case.path, *(case.path.replace(there, gone) for there, gone in NOTHING if there in case.path)]
            found = []
            for path in paths:
                whole = path.format(**filled)
                answer = send(world, visitors[kind], name, filled, path=whole)
                texts = [part for part in re.split(r"[/?]", whole) if len(part) > 3]
                found.append(bare(answer, f"/api/v1{whole}", *texts))
            compared += len(found) - 1
            wrong += [f"{name} {path}" for path, one in zip(paths, found, strict=True) if one != found[0]]
    assert wrong == []
    assert compared > 70


def test_what_belongs_to_somebody_else(world: World, visitors: dict[Kind, Any]):
    """Views, tokens and sessions of another person, also for a superuser."""
    owner = get_user_model().objects.create_user("owner")
    owner.user_permissions.set(Permission.objects.filter(content_type__app_label="machines"))
    token, text = tokens.make(owner, "theirs", ["view"])
    session = tokens.make_session(tokens.check(text))[0]
    view = SavedView.objects.create(owner=owner, name="theirs", page="/machines/activation/", shared=False)
    world.settle()
    cases = [
        ("post", reverse("signalbox:view-rename", args=[view.pk]), reverse("signalbox:view-rename", args=[7777])),
        ("post", reverse("signalbox:view-delete", args=[view.pk]), reverse("signalbox:view-delete", args=[7777])),
        (
            "post",
            reverse("signalbox:token-revoke", args=[token.handle]),
            reverse("signalbox:token-revoke", args=["0" * 12]),
        ),
        (
            "post",
            reverse("signalbox:session-end", args=[session.handle]),
            reverse("signalbox:session-end", args=["0" * 16]),
        ),
        ("delete", f"/api/v1/views/{view.pk}", "/api/v1/views/7777"),
        ("delete", f"/api/v1/sessions/{session.handle}", f"/api/v1/sessions/{'0' * 16}"),
    ]
    for kind in (BY_NAME["superuser"], BY_NAME["view on all"], BY_NAME["everything elsewhere"]):
        for method, theirs, nothing in cases:
            found = [
                bare(world.ask(visitors[kind], method, path, data=b"{}", content_type="application/json"), path)
                for path in (theirs, nothing)
            ]
            assert found[0] == found[1], (kind, theirs)
            assert found[0][0] == 404, (kind, theirs)


def test_rows_of_the_admin_of_machines_out_of_scope(world: World, visitors: dict[Kind, Any]):
    get_user_model().objects.update(is_staff=True)
    machine = Machine.objects.get(name="activation")
    rows = {
        "machines_machine": machine.pk,
        "machines_machineversion": machine.version().pk,
        "machines_auditentry": AuditEntry.objects.create(actor="ann", action="fire", machine=machine.name).pk,
    }
    for model, pk in rows.items():
        for screen in ("change", "history", "delete"):
            paths = [reverse(f"admin:{model}_{screen}", args=[key]) for key in (pk, 7777)]
            for method in ("get", "post"):
                found = [
                    bare(world.ask(visitors[KINDS[0]], method, path, follow=True), path, f"“{key}”")
                    for path, key in zip(paths, (pk, 7777), strict=True)
                ]
                assert found[0] == found[1], (model, screen, method)
    for screen in ("instances", "instance"):
        paths = [reverse(f"admin:machines_machine_{screen}", args=[key]) for key in (machine.pk, 7777)]
        found = [bare(world.ask(visitors[KINDS[0]], "get", path), path) for path in paths]
        assert found[0] == found[1]
        assert found[0][0] == 403
