"""The pages: made, changed, paused, rotated, sent again; the secret is shown once; all of it is in the audit."""

import re

import pytest
from django.urls import reverse

from machines.models import AuditEntry, Delivery, Webhook
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.webhooks import management, sender
from machines.webhooks.errors import BadWebhook

FORM = {"name": "billing", "url": "https://hooks.example/in", "machines": "order, payment", "types": "order.*, paid"}


@pytest.fixture
def client(as_, engine):
    return as_("supervisor", "sue")


def test_one_is_made_and_its_secret_shown_once_and_kept_out_of_everything_else(client):
    made = client.post(reverse("signalbox:webhook-make"), FORM)
    page = made.content.decode()
    webhook = Webhook.objects.get()
    (secret,) = re.findall(r"whsec_[A-Za-z0-9+/=]{44}", page)
    assert (webhook.secret, webhook.maker) == (secret, "sue")
    assert (webhook.machines, webhook.types) == (["order", "payment"], ["order.*", "paid"])
    assert "no-store" in made["Cache-Control"]
    assert webhook.since > 0
    for name, args in (("webhooks", []), ("webhook", [webhook.pk]), ("audit", [])):
        assert secret not in client.get(reverse(f"signalbox:{name}", args=args)).content.decode()
    assert secret not in str(AuditEntry.objects.values_list("detail", flat=True))
    assert secret not in repr(webhook)


@pytest.mark.parametrize("field", ["types", "machines", "name"])
@pytest.mark.parametrize("text", ["a\0b", "a\ud800"], ids=["NUL", "half a pair"])
def test_what_no_database_takes_is_refused_whoever_sends_it(user_of, engine, field, text):
    fields = {"name": "billing", "url": FORM["url"], field: text if field == "name" else [text]}
    with pytest.raises(BadWebhook) as refused:
        management.make(Actor(user_of("supervisor")), **fields)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("url", "http://10.0.0.1/", "SIGNALBOX_WEBHOOK_HOSTS"), ("url", "ftp://x/", "https://"),
        ("name", "a\u202eb", "visible characters"), ("machines", "a b", "SB445"), ("types", ",", "SB445"),
        ("types", "*a*b*c*d*e*f*", "five"), ("name", "", "required"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_beside_its_field_and_nothing_is_made(client, field, value, said):
    answer = client.post(reverse("signalbox:webhook-make"), FORM | {field: value})
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert Webhook.objects.count() == 0


def test_everything_else_is_done_from_its_page_and_stands_in_the_audit(client, hook, receiver, engine, bell):
    webhook = hook("first")
    address = reverse("signalbox:webhook", args=[webhook.pk])
    assert (
        client.post(reverse("signalbox:webhook-make"), FORM | {"name": "first"}).status_code == 400
    )  # the name is taken
    answer = client.post(f"{address}change/", FORM | {"url": receiver.url, "name": "second", "machines": ""})
    assert answer.status_code == 302
    client.post(f"{address}test/")
    receiver.answers, receiver.body = [500], b"<script>alert(1)</script>"
    sender.send_due()
    delivery = Delivery.objects.get()
    page = client.get(f"{address}?state=waiting").content.decode()
    assert "HTTP 500" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    client.post(f"{address}deliveries/{delivery.pk}/again/")
    assert sender.send_due() == 1
    assert "No deliveries" in client.get(f"{address}?state=waiting").content.decode()
    client.post(f"{address}pause/")
    assert "Not done" in client.post(f"{address}test/", follow=True).content.decode()
    client.post(f"{address}resume/")
    assert re.search("whsec_[^<]+", client.post(f"{address}rotate/").content.decode()).group() != webhook.secret
    assert "enter the name of the webhook" in client.post(f"{address}delete/", follow=True).content.decode()
    assert client.post(f"{address}delete/", {"name": "second"}).status_code == 302
    assert Webhook.objects.count() == Delivery.objects.count() == 0
    acts = list(AuditEntry.objects.order_by("id").values_list("action", "outcome", "target"))
    assert acts == [
        ("webhook.make", "done", "first"), ("webhook.make", "refused", "first"), ("webhook.change", "done", "first"),
        ("webhook.test", "done", "second"), ("webhook.redeliver", "done", "second"),
        ("webhook.change", "done", "second"), ("webhook.test", "refused", "second"),
        ("webhook.change", "done", "second"), ("webhook.rotate", "done", "second"),
        ("webhook.delete", "done", "second"),
    ]  # fmt: skip


def test_the_log_has_pages(client, hook):
    webhook = hook()
    rows = [Delivery(webhook=webhook, message=str(n), key=f"k{n}", type=f"t{n}", body="{}") for n in range(120)]
    Delivery.objects.bulk_create(rows)
    address, seen = reverse("signalbox:webhook", args=[webhook.pk]), []
    while address:
        page = client.get(address).content.decode()
        seen += re.findall(r'<span class="event">(t\d+)<', page)
        following = re.search(r'rel="next"\s+href="([^"]+)"', page)
        address = following and following.group(1).replace("&amp;", "&")
    assert seen == [f"t{n}" for n in reversed(range(120))]
    for wrong in ("?state=x", "?before=x", "?before=-1", f"?before={10**30}"):
        assert client.get(reverse("signalbox:webhook", args=[webhook.pk]) + wrong).status_code == 404


def test_a_service_called_without_the_right_says_so_and_that_is_in_the_audit(user_of, engine, hook):
    webhook = hook()
    viewer = Actor(user_of("viewer", "tom"), "api 192.0.2.1")
    for call in (management.rotate, management.pause, management.resume, management.test, management.delete):
        with pytest.raises(Forbidden):
            call(viewer, webhook.pk)
    with pytest.raises(Forbidden):
        management.list_webhooks(viewer)
    assert AuditEntry.objects.filter(actor="tom", outcome="refused").count() == 5
    assert Webhook.objects.get().secret == webhook.secret


@pytest.mark.parametrize("given", [{"machines": "x"}, {"types": 7}, {"types": [1]}, {"secret": "x"}, {"name": None}])
def test_what_a_program_gets_wrong_is_a_bad_webhook(actor, engine, hook, given):
    with pytest.raises(BadWebhook):
        management.change(actor, hook().pk, **given)
