"""The digest goes out once in a period, by mail and to the webhooks that name it."""

import json

import pytest
from django.core import mail
from django.core.management import call_command

from machines.jobs.failures import digest
from machines.models import Delivery, Webhook
from tests.configuration import configure


@pytest.fixture
def hooks(transactional_db):
    for name, types, machines in (
        ("named", ["errors.digest"], []),
        ("all", ["*"], []),
        ("one", ["errors.digest"], ["x"]),
    ):
        Webhook.objects.create(
            name=name, url="https://hooks.example/", types=types, machines=machines, secret="s", maker="ann"
        )


def test_a_digest_goes_out_once_in_a_period(die, follow, hooks, settings):
    die("a", "b", error="order 17 not found")
    follow()
    assert not digest.send_due()
    configure(settings, ERROR_DIGEST="daily", ERROR_DIGEST_TO=["ops@example.com"])
    assert [digest.send_due(), digest.send_due()] == [True, False]
    (sent,) = mail.outbox
    assert sent.to == ["ops@example.com"]
    assert "ValueError in work: order <number> not found" in sent.body
    (delivery,) = Delivery.objects.all()
    assert delivery.webhook.name == "named"
    assert json.loads(delivery.body)["data"]["items"][0]["open"] == 2
    assert "17" not in sent.body.replace("2017", "")


def test_the_command_sends_it_now(die, follow, hooks, settings, capsys):
    configure(settings, ERROR_DIGEST_TO=["ops@example.com"], ENVIRONMENT={"name": "test", "colour": "green"})
    call_command("error_digest")
    assert mail.outbox[0].subject == "[test] Signalbox: 0 open error groups, 0 regressions"
    assert json.loads(Delivery.objects.get().body)["environment"] == "test"
    assert capsys.readouterr().out == "1 mail sent, 1 webhook deliveries made\n"
    assert "No open errors." in mail.outbox[0].body
