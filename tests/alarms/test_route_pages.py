"""The pages of routes: a secret is shown once, an address never again, and the room says when nobody is told."""

from __future__ import annotations

from machines.models import AlarmRoute, Delivery, Webhook
from tests.pages.reading import read
from tests.webhooks.conftest import receiver

from .test_routes import apprise

__all__ = ["apprise", "receiver"]

SENT = {"severity": "warning", "zone": "UTC", "after": "0", "machines": "", "kinds": "dead, sla", "hours": ""}


def test_the_room_says_that_nobody_is_told_until_there_is_a_route(as_, desk, receiver):
    assert "nobody is notified" in read(as_("viewer").get("/alarms/")).text
    boss = as_("supervisor", "boss")
    page = read(boss.get("/alarms/"))
    assert {link["href"] for link in page.all("a", href="/alarms/routes/")}
    made = boss.post("/alarms/routes/new/", SENT | {"name": "ops", "url": receiver.url})
    assert Webhook.objects.get().secret in made.content.decode(), "shown this once"
    assert "nobody is notified" not in read(boss.get("/alarms/")).text
    route = AlarmRoute.objects.get()
    assert (route.kinds, str(route)) == (["dead", "sla"], "ops")
    boss.post(f"/alarms/routes/{route.pk}/pause/")
    assert "nobody is notified" in read(boss.get("/alarms/")).text


def test_a_secret_is_never_shown_again_and_a_blank_address_stays(as_, db, receiver):
    boss = as_("supervisor", "boss")
    boss.post("/alarms/routes/new/", SENT | {"name": "ops", "url": receiver.url})
    hook, route = Webhook.objects.get(), AlarmRoute.objects.get()
    address = f"/alarms/routes/{route.pk}/"
    assert boss.post(f"{address}change/", SENT | {"name": "ops", "url": "", "after": "10"}).status_code == 302
    hook.refresh_from_db()
    route.refresh_from_db()
    assert (hook.url, route.after) == (receiver.url, 10)
    refused = boss.post(f"{address}change/", SENT | {"name": "ops", "hours": "noon"})
    pages = [boss.get(path) for path in (address, "/alarms/routes/", "/webhooks/", "/audit/")] + [refused]
    for page in pages:
        text = page.content.decode()
        assert "/hook?a=b" not in text
        assert hook.secret not in text
    assert refused.status_code == 400
    assert "mon-fri 08:00-18:00" in read(refused).text
    assert boss.get(f"/webhooks/{hook.pk}/").status_code == 404, "it is no webhook"
    assert boss.get(f"/api/v1/webhooks/{hook.pk}").status_code == 404
    assert boss.get("/api/v1/webhooks").json() == {"items": []}


def test_a_typo_is_named_at_its_field(as_, db, apprise):
    page = as_("supervisor").post("/alarms/routes/new/", SENT | {"name": "ops", "url": "slak://a/b/c"})
    assert page.status_code == 400
    assert "did you mean slack://?" in read(page).one("span", id="route-url_error").text
    assert not AlarmRoute.objects.exists()


def test_the_button_sends_a_test_and_the_log_has_its_result(as_, db, receiver):
    boss = as_("supervisor", "boss")
    boss.post("/alarms/routes/new/", SENT | {"name": "ops", "url": receiver.url})
    address = f"/alarms/routes/{AlarmRoute.objects.get().pk}/"
    boss.post(f"{address}test/")
    page = read(boss.get(address))
    assert "signalbox.test" in page.one("table").text
    Delivery.objects.update(state="dead")
    boss.post(f"{address}deliveries/{Delivery.objects.get().pk}/again/")
    assert Delivery.objects.get().state == "waiting"
    assert boss.post(f"{address}delete/", {"name": "other"}).status_code == 302
    assert AlarmRoute.objects.exists()
    boss.post(f"{address}delete/", {"name": "ops"})
    assert not Webhook.objects.exists()
