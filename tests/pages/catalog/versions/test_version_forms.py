"""The forms that change which version new instances get: roll-out, pin, withdrawal, policy; and those that are not
carried out, which are shown again with what is wrong."""

from __future__ import annotations

import pytest

from machines.models import Approval
from tests.pages.reading import read

from .test_diff import FIRST, SECOND

PAGE = "/machines/lamp/versions/"


@pytest.fixture
def lamps(engine, db):
    engine.publish(FIRST)
    engine.publish(SECOND)
    return engine


def mistake(answer) -> str:
    return read(answer).one("div", class_="notices").text


def test_a_version_is_pinned_and_unpinned(as_, lamps):
    client = as_("publisher")
    answer = client.post(f"{PAGE}pin/", {"version": "1", "reason": "an audit"}, follow=True)
    assert "Pinned to version 1" in read(answer).text
    assert lamps.live("lamp").version == 1
    answer = client.post(f"{PAGE}pin/", {"do": "unpin"}, follow=True)
    assert "Unpinned" in read(answer).text
    assert lamps.live("lamp").version == 2


def test_a_version_is_withdrawn_and_allowed_again(as_, lamps):
    client = as_("publisher")
    assert "Version 1 is withdrawn" in read(client.post(f"{PAGE}withdraw/", {"version": "1"}, follow=True)).text
    answer = client.post(f"{PAGE}withdraw/", {"version": "1", "do": "allow"}, follow=True)
    assert "Version 1 is allowed again" in read(answer).text


@pytest.mark.parametrize(
    ("form", "sent", "status", "said"),
    [
        ("pin", {"version": "x"}, 400, "choose a version (SB400)"),
        ("pin", {"version": "9"}, 409, "version 9 is not published (SB420)"),
        ("pin", {"version": "1", "reason": "x" * 5000}, 400, "a reason has at most 1000 characters (SB400)"),
        ("withdraw", {"version": "2"}, 409, "version 2 is current"),
        ("rollout", {"percent": "many"}, 400, "a number from 0 to 100 (SB631)"),
        ("rollout", {"do": "stop"}, 409, "no version is rolled out (SB626)"),
        ("rollout", {"do": "finish"}, 409, "no version is rolled out (SB626)"),
    ],
)
def test_what_is_not_done_is_said_on_the_page(as_, lamps, form, sent, status, said):
    answer = as_("publisher").post(f"{PAGE}{form}/", sent)
    assert answer.status_code == status
    assert "Not done: " in mistake(answer)
    assert said in mistake(answer)
    assert lamps.live("lamp").version == 2


def test_a_rollout_changes_its_share_and_is_finished_or_stopped(as_, lamps):
    client = as_("publisher")
    lamps.start_rollout("lamp", 1, 10, actor="sue", reason="a trial")
    assert "25 % of new instances" in read(client.post(f"{PAGE}rollout/", {"percent": "25"}, follow=True)).text
    assert "Roll-out stopped" in read(client.post(f"{PAGE}rollout/", {"do": "stop"}, follow=True)).text
    client.post(f"{PAGE}rollout/", {"percent": "30"})
    assert "Roll-out finished" in read(client.post(f"{PAGE}rollout/", {"do": "finish"}, follow=True)).text
    assert lamps.live("lamp").version == 1


def test_a_policy_asks_for_a_second_person(as_, lamps):
    client = as_("publisher")
    sent = {"actions": ["publish"], "publish-quorum": "1", "reason": "two look at it"}
    answer = client.post(f"{PAGE}policy/", sent, follow=True)
    assert "A second person approves: publish" in read(answer).text
    answer = client.post(f"{PAGE}pin/", {"version": "1"})
    assert (answer.status_code, "reason" in mistake(answer)) == (400, True)
    answer = client.post(f"{PAGE}pin/", {"version": "1", "reason": "an audit"})
    approval = Approval.objects.get()
    assert answer.url == f"/approvals/{approval.pk}/"
    assert (approval.action, lamps.live("lamp").version) == ("version.pin", 2)
