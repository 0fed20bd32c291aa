"""A token does not get around a fresh sign-in."""

from __future__ import annotations

from machines.models import AuditEntry
from tests.configuration import configure

from .table import WHY


def test_no_token_does_what_asks_for_a_fresh_sign_in(door, caller, settings):
    holder = caller("view", "fire", "operate", on="door", scopes=("view", "fire", "operate"))
    here, forced = "/machines/door/instances/front", {"state": "opened"} | WHY
    configure(settings, FRESH_SIGN_IN=["force"])
    refused = holder.post(f"{here}/repairs/force", forced)
    assert (refused.status_code, refused.json()["code"]) == (403, "SB664"), refused.content
    assert "a person has to do it on a page" in refused.json()["detail"]
    assert AuditEntry.objects.get(action="force").outcome == "refused"
    configure(settings, FRESH_SIGN_IN=[])
    assert holder.post(f"{here}/repairs/force", forced).status_code == 200
