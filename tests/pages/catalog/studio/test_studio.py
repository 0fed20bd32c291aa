"""The Studio's page and its endpoints: who may what, the form without a script, drafts, conflicts, hostile texts."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from machines.catalog import offload
from machines.catalog.editing.starters import list_starters
from machines.catalog.publishing import adopt
from machines.catalog.versions import drafts as draft_service
from machines.engine.limits import MAX_DEFINITION, MAX_STATES, VIEWERS_DEFINITION
from machines.models import AuditEntry, Draft
from tests.pages.catalog.versions.test_diff import FIRST, SECOND
from tests.pages.reading import fields, read

EDIT = "/machines/lamp/edit/"
NEW = "/machines/new/"


@pytest.fixture
def lamps(engine, db) -> str:
    return engine.publish(FIRST).name


def post(client, address: str, text: str | bytes, **terms):
    """Sends a text as the script does."""
    return client.post(address, text, content_type="text/plain; charset=utf-8", query_params=terms)


def form_of(page):
    return next(form for form in page.all("form") if "data-studio" in form.attributes)


def test_who_may_view_reads_and_cannot_save(as_, lamps):
    client = as_("viewer")
    page = read(client.get(EDIT))
    assert "read-only" in page.one("div", class_="head").text
    assert not page.all("button", value="save")
    assert json.loads(fields(form_of(page))["text"])["id"] == "lamp"
    assert post(client, f"{EDIT}check/", json.dumps(FIRST)).json()["svg"]
    assert post(client, f"{EDIT}save/", json.dumps(FIRST)).status_code == 403
    assert client.post(f"{EDIT}submit/", {"text": "{}"}).status_code == 403
    assert client.get(NEW).status_code == 403


def test_a_machine_that_is_not_there_is_a_404(as_, lamps):
    assert as_("publisher").get("/machines/nothing/edit/").status_code == 404


def test_the_page_opens_with_the_diagram_of_its_text(as_, lamps):
    client, person = as_("publisher"), get_user_model().objects.get()
    adopt("lamp")
    offload.pool.end()  # a published text needs no helper
    assert read(client.get(EDIT)).one("svg", class_="sb-diagram").all("g", **{"data-state": "off"})
    wrong = Draft.objects.create(machine="lamp", base=1, text='{"id": "lamp", "initial": "offf"}', author="sue")
    dims = Draft.objects.create(machine="lamp", base=1, text=json.dumps(SECOND), author="sue")
    assert not read(client.get(f"{EDIT}?draft={dims.pk}")).all("svg", class_="sb-diagram")  # no helper is started
    post(client, f"{EDIT}check/", json.dumps(SECOND))
    page = read(client.get(f"{EDIT}?draft={dims.pk}"))
    assert page.one("svg", class_="sb-diagram").text != read(client.get(EDIT)).one("svg", class_="sb-diagram").text
    assert read(client.get(f"{NEW}?template=order")).all("svg", class_="sb-diagram")
    page = read(client.get(f"{EDIT}?draft={wrong.pk}"))
    assert not page.all("svg", class_="sb-diagram")
    assert "offf" in page.one("section", id="findings").text
    with offload.pool.turn(str(person.pk)):
        assert not read(client.get(f"{EDIT}?draft={dims.pk}")).all("svg", class_="sb-diagram")


def test_without_a_script_a_text_is_saved_as_a_draft_and_found_again(as_, lamps):
    client = as_("publisher")
    form = form_of(read(client.get(EDIT)))
    answer = client.post(form["action"], fields(form) | {"text": json.dumps(SECOND), "note": "dims", "do": "save"})
    draft = Draft.objects.get()
    assert (answer.status_code, answer.url) == (302, f"{EDIT}?draft={draft.pk}&check=")
    assert (draft.machine, draft.base, draft.note, draft.editor) == ("lamp", 1, "dims", draft.author)
    again = read(client.get(EDIT))
    assert json.loads(fields(form_of(again))["text"]) == SECOND
    assert f"draft {draft.pk}" in again.one("div", class_="head").text


def test_without_a_script_a_saved_text_is_checked_also_where_no_helper_runs_yet(as_, lamps):
    client = as_("publisher")
    offload.pool.end()
    text = '{"id": "lamp", "initial": "off", "states": {"off": {"on": {"press": "nowhere"}}}}'
    answer = client.post(f"{EDIT}submit/", {"do": "save", "text": text}, follow=True)
    assert 'no state "nowhere"' in read(answer).one(id="findings").text


def test_a_new_machine_is_saved_under_its_id_and_published_from_its_draft(as_, engine, db):
    client = as_("publisher")
    form = form_of(read(client.get(f"{NEW}?template=order")))
    assert json.loads(fields(form)["text"])["id"] == "order"
    answer = client.post(NEW, fields(form) | {"do": "save"})
    draft = Draft.objects.get()
    assert answer.url == f"/machines/order/edit/?draft={draft.pk}&check="
    assert client.get(answer.url).status_code == 200
    page = read(client.get(f"/machines/order/versions/drafts/{draft.pk}/"))
    publish = fields(page.one("section", id="publish").all("form")[0]) | {"rollout": ""}
    assert client.post(f"/machines/order/versions/drafts/{draft.pk}/publish/", publish).status_code == 302
    assert engine.live("order").version == 1


def test_a_new_text_without_an_id_says_so(as_, db):
    answer = as_("publisher").post(NEW, {"text": '{"states": {"a": {}}}', "do": "save"})
    assert answer.status_code == 400
    assert "write &quot;id&quot;" in answer.content.decode()
    assert Draft.objects.count() == 0


@pytest.mark.parametrize("name", list_starters())
def test_each_template_opens(as_, db, name):
    page = read(as_("publisher").get(f"{NEW}?template={name}"))
    assert json.loads(fields(form_of(page))["text"]) == json.loads(list_starters()[name].text)


def test_a_draft_that_somebody_changed_is_a_conflict_with_both_texts(as_, lamps):
    client = as_("publisher")
    draft = Draft.objects.create(machine="lamp", base=1, text="{}", author="sue", editor="sue")
    form = form_of(read(client.get(f"{EDIT}?draft={draft.pk}")))
    Draft.objects.filter(pk=draft.pk).update(text="their words", revision=2, editor="pat")
    answer = client.post(form["action"], fields(form) | {"text": "my words", "do": "save"})
    page = read(answer)
    assert answer.status_code == 409
    assert "their words" in page.one("textarea", id="their-text").text
    assert "my words" in fields(form_of(page))["text"]
    assert "pat changed this draft" in page.one("main").text
    client.post(form["action"], fields(form_of(page)) | {"do": "save"})
    assert Draft.objects.get().text.strip() == "my words"


def test_the_script_hears_of_a_conflict_with_the_other_text(as_, lamps):
    client = as_("publisher")
    made = post(client, f"{EDIT}save/", json.dumps(FIRST), base=1).json()
    Draft.objects.filter(pk=made["id"]).update(text="theirs", revision=2, editor="pat", editor_id="0")
    answer = post(client, f"{EDIT}save/", "mine", draft=made["id"], expect=made["revision"])
    assert answer.status_code == 409
    assert (answer.json()["draft"]["text"], answer.json()["draft"]["editor"]) == ("theirs", "pat")
    assert Draft.objects.get().text == "theirs"


def test_a_closed_draft_and_one_of_another_machine_are_not_written(as_, lamps, activation):
    client = as_("publisher")
    closed = Draft.objects.create(machine="lamp", base=1, text="kept", author="sue", state="discarded")
    assert post(client, f"{EDIT}save/", "mine", draft=closed.pk, expect=1).status_code == 409
    assert post(client, "/machines/activation/edit/save/", "mine", draft=closed.pk, expect=1).status_code == 404
    assert client.get(f"/machines/activation/edit/?draft={closed.pk}").status_code == 404
    assert Draft.objects.get().text == "kept"


def test_one_sitting_is_one_entry_of_the_audit(as_, lamps):
    client = as_("publisher")
    made = post(client, f"{EDIT}save/", json.dumps(FIRST), base=1).json()
    for number in range(3):
        text = json.dumps(FIRST | {"description": str(number)})
        made = post(client, f"{EDIT}save/", text, draft=made["id"], expect=made["revision"]).json()
    assert (made["revision"], AuditEntry.objects.filter(action="draft.save").count()) == (4, 1)
    Draft.objects.update(updated_at=timezone.now() - 2 * draft_service.SITTING)
    post(client, f"{EDIT}save/", json.dumps(SECOND), draft=made["id"], expect=made["revision"])
    assert AuditEntry.objects.filter(action="draft.save").count() == 2


def test_a_stale_base_is_said(as_, engine, lamps):
    Draft.objects.create(machine="lamp", base=1, text=json.dumps(SECOND), author="sue")
    engine.publish(FIRST | {"description": "another hand was faster"})
    page = read(as_("publisher").get(f"{EDIT}?draft={Draft.objects.get().pk}"))
    assert "Version 2 was published since" in page.one("main").text


def test_two_people_see_each_other_until_one_leaves(as_, lamps):
    sue, pat = as_("publisher", "sue"), as_("publisher", "pat")
    address = f"{EDIT}presence/"
    assert sue.post(address).json()["others"] == []
    others = pat.post(f"{address}?draft=3&line=7&state=on").json()["others"]
    assert others == [{"who": "sue", "draft": None, "line": None, "state": ""}]
    assert sue.post(address).json()["others"] == [{"who": "pat", "draft": 3, "line": 7, "state": "on"}]
    assert as_("viewer").post(address).status_code == 403
    assert "pat" in read(sue.get(EDIT)).one("main").text
    pat.post(f"{address}?leave=1")
    assert sue.post(address).json()["others"] == []


def test_a_page_that_moves_in_the_studio_wakes_the_others_and_one_that_stays_does_not(as_, engine, lamps):
    sue, address = as_("publisher", "sue"), f"{EDIT}presence/"

    def is_told() -> bool:
        partition = engine.keys.partition("lamp", 0)
        return bool(engine.client.delete(partition.edited))

    seen = []
    for query in ("", "", "?line=2", "?line=2&state=on", "?line=2&state=on", "?leave=1", "?leave=1"):
        sue.post(address + query)
        seen.append(is_told())
    assert seen == [True, False, True, True, False, True, False]


def test_the_place_of_somebody_is_a_line_and_a_name(as_, lamps):
    sue, pat = as_("publisher", "sue"), as_("publisher", "pat")
    sue.post(f"{EDIT}presence/", query_params={"line": "-1", "state": "x" * 300})
    (found,) = pat.post(f"{EDIT}presence/").json()["others"]
    assert found == {"who": "sue", "draft": None, "line": None, "state": "x" * 100}


def test_a_check_needs_a_token_of_the_form(user_of, lamps):
    client = Client(enforce_csrf_checks=True)
    client.force_login(user_of("publisher"))
    assert post(client, f"{EDIT}check/", "{}").status_code == 403


@pytest.mark.parametrize(
    ("role", "size", "status"),
    [
        ("publisher", MAX_DEFINITION, 200),
        ("publisher", MAX_DEFINITION + 1, 413),
        ("viewer", VIEWERS_DEFINITION + 1, 413),
    ],
)
def test_the_size_of_a_text_is_limited(as_, lamps, role, size, status):
    text = '{"id": "' + "x" * (size - 10) + '"}'
    assert post(as_(role), f"{EDIT}check/", text).status_code == status


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b"hello", b"[" * 50_000, b'{"states": {"a": {"on": {"', b"\x00"])
def test_anything_gets_an_answer(as_, lamps, text):
    answer = post(as_("publisher"), f"{EDIT}check/", text)
    assert answer.status_code in (200, 400)
    assert "findings" in answer.json() or answer.json()["code"] == "SB700"


def test_a_change_of_the_diagram_is_answered_with_its_edits(as_, lamps):
    client, text = as_("publisher"), json.dumps(FIRST)
    sent = {"text": text, "change": {"do": "add-state", "name": "dim"}}
    answer = client.post(f"{EDIT}check/", sent, content_type="application/json", query_params={"draw": "0"}).json()
    ((start, end, words),) = answer["change"]["edits"]
    assert "dim" in json.loads(text[:start] + words + text[end:])["states"]


@pytest.mark.parametrize(
    "body", ['{"text"', "[" * 100_000, "[]", "{}", '{"text": 1, "change": {}}', '{"text": "", "change": 1}']
)
def test_half_a_change_is_refused(as_, lamps, body):
    answer = as_("publisher").post(f"{EDIT}check/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "SB700")


@pytest.mark.parametrize(("count", "errors"), [(MAX_STATES, 0), (1000, 1)])
def test_many_states_are_checked_and_drawn(as_, lamps, count, errors):
    states = {f"s{n}": {"on": {"go": f"s{(n + 1) % count}"}} for n in range(count)}
    text = json.dumps({"id": "lamp", "initial": "s0", "states": states})
    client = as_("publisher")
    findings = post(client, f"{EDIT}check/", text, draw="0").json()
    assert (findings["errors"], len(findings["names"]["states"])) == (errors, count)
    drawn = post(client, f"{EDIT}check/", text)
    assert drawn.status_code in (200, 422)
    assert errors or "svg" in drawn.json() or drawn.json()["code"] == "SB716"


def test_too_many_checks_are_refused_with_when_to_come_again(as_, lamps, monkeypatch):
    monkeypatch.setattr("dashboard.catalog.studio.checks.CHECKS", 2)
    client = as_("publisher")
    codes = [post(client, f"{EDIT}check/", "{}").status_code for _ in range(3)]
    assert codes == [200, 200, 429]
    assert int(post(client, f"{EDIT}check/", "{}")["Retry-After"]) > 0


def test_the_language_and_what_is_there_are_sent_for_completion(as_, devices, lamps):
    adopt("new_device")
    known = post(as_("publisher"), f"{EDIT}check/", "{}", known="1").json()["known"]
    assert {"lamp", "new_device"} <= set(known["machines"])
    assert known["schema"]["$defs"]["transition"]["properties"]["target"]["description"]
    assert known["functions"]["len"]
    assert known["handlers"]


STUCK = {
    "id": "lamp", "initial": "off",
    "states": {
        "off": {"on": {"press": "on", "break": "broken"}},
        "on": {"on": {"press": "off", "remove": "gone"}},
        "broken": {}, "gone": {"type": "final"},
    },
}  # fmt: skip


def test_a_text_is_verified_with_the_run_and_the_place_of_each_finding(as_, lamps):
    text = json.dumps(STUCK, indent=2)
    answer = post(as_("viewer"), f"{EDIT}verify/", text, format="json").json()
    found = [one for one in answer["findings"] if one["verdict"] == "found"]
    assert [(one["code"], one["steps"]) for one in found] == [("SB803", ["create", "fire break"])]
    assert text[slice(*found[0]["range"])] == '"broken"'
    assert answer["counts"] == {"found": 1, "undecided": 0, "proven": len(answer["findings"]) - 1}
    assert post(as_("publisher"), f"{NEW}verify/", text).json()["counts"] == answer["counts"]


def test_a_run_is_linked_where_the_simulator_has_that_definition(as_, engine, db):
    engine.publish(STUCK)
    client = as_("viewer")
    (found,) = [one for one in post(client, f"{EDIT}verify/", json.dumps(STUCK)).json()["findings"] if one["steps"]]
    assert client.get(found["link"]).status_code == 200
    other = post(client, f"{EDIT}verify/", json.dumps(STUCK | {"description": "x"})).json()["findings"]
    assert not any("link" in one for one in other)


def test_a_text_with_errors_one_too_large_and_one_too_many_are_not_verified(as_, lamps):
    client = as_("publisher")
    assert "Correct the errors" in post(client, f"{EDIT}verify/", '{"states": ').json()["unread"]
    large = json.dumps(STUCK | {"description": "x" * (200 * 1024)})
    assert "bytes are verified here" in post(client, f"{EDIT}verify/", large).json()["unread"]
    person = get_user_model().objects.get(pk=client.session["_auth_user_id"])
    with offload.pool.turn(f"{person.pk}:verify"):
        assert post(client, f"{EDIT}verify/", json.dumps(STUCK)).status_code == 429


def test_a_machine_made_to_explode_is_not_decided_within_its_budget(as_, lamps):
    counters = {f"n{at}": 0 for at in range(6)}
    on = {f"e{at}": {"guard": f"n{at} < 50", "actions": {"set": {f"n{at}": f"n{at} + 1"}}} for at in range(6)}
    bomb = {"id": "lamp", "initial": "a", "context": counters, "states": {"a": {"on": on}, "b": {}}}
    answer = post(as_("publisher"), f"{EDIT}verify/", json.dumps(bomb)).json()
    assert answer["counts"]["undecided"] > 0
    assert any("within the budget" in one["message"] for one in answer["findings"])
