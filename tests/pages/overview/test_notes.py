"""The handover note: seen by everybody, changed by those who fire, and never overwritten unseen."""

from __future__ import annotations

import pytest

from machines.models import AuditEntry
from machines.people import notes
from machines.people.notes import KEY, MAX_TEXT
from tests.pages.reading import fields, read


def panel(client):
    return read(client.get("/")).all("section", class_="note")


def sent(client, text, revision=None):
    """A form as the overview gives it, unless another revision is wanted."""
    held = fields(panel(client)[0].one("form"))
    return client.post("/note/", held | {"text": text} | ({} if revision is None else {"revision": revision}))


def test_what_one_shift_writes_the_next_one_reads(as_, db, prefix):
    supervisor, viewer = as_("operator", "sue"), as_("viewer", "vera")
    assert panel(viewer) == []
    assert "Add a note for the next shift" in panel(supervisor)[0].text
    answer = sent(supervisor, "  lamp 7 is <b>out</b>\r\ncall Ben & Jo 🚦  \r\n")
    assert (answer.status_code, answer.url) == (302, "/")
    (shown,) = panel(viewer)
    assert shown.one("p", class_="words").text == "lamp 7 is <b>out</b> call Ben & Jo 🚦"
    assert "sue" in shown.one("header").text
    assert shown.all("form") == []
    entry = AuditEntry.objects.get(action="note.write")
    assert (entry.actor, entry.outcome) == ("sue", "done")
    assert entry.detail["text"] == "  lamp 7 is <b>out</b>\ncall Ben & Jo 🚦"
    sent(supervisor, "")
    assert panel(viewer) == []


def test_two_who_write_at_once_see_both_texts_and_join_them(as_, db, prefix):
    sue, sam = as_("supervisor", "sue"), as_("supervisor", "sam")
    sent(sue, "old")
    seen = fields(panel(sam)[0].one("form"))
    sent(sue, "hers")
    answer = sam.post("/note/", seen | {"text": "his"})
    assert answer.status_code == 409
    page = read(answer)
    assert [part.text for part in page.all("p", class_="words")] == ["hers", "his"]
    joining = fields(page.one("section", class_="narrow").one("form"))
    assert "".join(page.one("textarea").inside).strip() == "hers\n\nhis"
    assert panel(sue)[0].one("p", class_="words").text == "hers"
    assert sam.post("/note/", joining | {"text": "hers and his"}).status_code == 302
    assert panel(sue)[0].one("p", class_="words").text == "hers and his"
    outcomes = list(AuditEntry.objects.filter(action="note.write").order_by("pk").values_list("actor", "outcome"))
    assert outcomes == [("sue", "done"), ("sue", "done"), ("sam", "refused"), ("sam", "done")]
    refused = AuditEntry.objects.get(action="note.write", outcome="refused")
    assert (refused.detail["code"], refused.detail["text"]) == ("SB481", "his")


def test_the_same_text_sent_twice_is_written_once(as_, db, prefix):
    sue = as_("supervisor", "sue")
    held = fields(panel(sue)[0].one("form")) | {"text": "once"}
    assert [sue.post("/note/", held).status_code for _ in range(2)] == [302, 302]
    assert AuditEntry.objects.filter(action="note.write").count() == 1


@pytest.mark.parametrize(
    ("text", "revision", "code"),
    [
        ("x" * (MAX_TEXT + 1), None, "SB403"),
        ("bell \a", None, "SB403"),
        ("nul \0", None, "SB403"),
        ("fine", "", "SB402"),
        ("fine", "-1", "SB402"),
        ("fine", "²", "SB402"),
        ("fine", "9" * 17, "SB402"),
        ("fine", str(2**53), "SB402"),
    ],
)
def test_what_cannot_be_kept_is_told_and_stays_in_the_form(as_, db, prefix, text, revision, code):
    sue = as_("supervisor", "sue")
    answer = sent(sue, text, revision)
    assert answer.status_code == 400
    page = read(answer)
    assert code in page.one("div", class_="stop").text
    assert "".join(page.one("textarea").inside).lstrip("\n") == text
    assert notes.note_of(notes.records().get(KEY)).revision == 0


def test_who_may_only_see_is_turned_away_and_that_is_recorded(as_, db, prefix):
    assert as_("viewer", "oscar").post("/note/", {"text": "mine", "revision": "0"}).status_code == 403
    entry = AuditEntry.objects.get(action="note.write")
    assert (entry.actor, entry.outcome) == ("oscar", "refused")


def test_a_note_that_another_program_spoiled_costs_the_first_page_nothing(as_, engine, db):
    key = f"{engine.keys.prefix}record:{{handover}}:r:note"
    engine.client.hset(key, mapping={"value": '["x"]', "generation": "1"})
    answer = as_("supervisor", "sue").get("/")
    assert answer.status_code == 200
    assert "SB510" in read(answer).one("section", class_="note").text
