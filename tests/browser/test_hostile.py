"""Hostile texts in a real browser: no dialog, nothing run, no element of theirs, nothing for the policy to refuse."""

from __future__ import annotations

from django.urls import reverse

from tests.security.hostile import MACHINE, QUEUE, furnish

PAGES = ["/", "/queues/", "/workers/", "/audit/", "/webhooks/", "/webhooks/7/", "/approvals/", "/bulk/3f2a/"]
THEIRS = """() => [window.zq, ...[...document.querySelectorAll("*")].filter((e) => e.localName.startsWith("zq")
    || [...e.attributes].some((a) => a.name.startsWith("on") || a.name.startsWith("zq"))).map((e) => e.outerHTML)]
    .filter((found) => found !== undefined)"""


def test_nothing_that_people_wrote_runs_in_a_browser(as_, engine):
    ids = furnish(engine)
    page = as_("supervisor")
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    machine, queue = reverse("signalbox:machine", args=[MACHINE]), reverse("signalbox:queue", args=[MACHINE, QUEUE])
    instances = [reverse("signalbox:instance", args=[MACHINE, id]) for id in ids[:3]]
    jobs = [reverse("signalbox:job", args=[MACHINE, f"0-{n}"]) for n in (1, 2)]
    for address in [*PAGES, machine, f"{machine}?mode=age", f"{queue}?place=dead", *instances, *jobs]:
        answer = page.goto(address)
        assert answer is not None, address
        assert answer.status == 200, address
        assert page.evaluate(THEIRS) == [], address
    engine.fire(MACHINE, engine.create(MACHINE, "late").id, "go", actor="<script>window.zq=9</script>")
    page.goto(instances[0])
    assert page.evaluate(THEIRS) == []
    assert dialogs == []
