"""Publishing in the admin: paste or upload, see all findings, publish."""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile

from machines.formats import FORMATS, READERS
from machines.models import Machine, MachineVersion
from tests.catalog.samples import BROKEN, door, wider_door

ADD = "/admin/machines/machine/add/"
YAML = "id: door\ninitial: Shut\nstates:\n  Shut: {on: {open: Open}}\n  Open: {on: {shut: Shut}}\n"


@pytest.fixture
def publisher(staff):
    return staff("view", "publish", name="paula")


def posted(text: str = "", **fields: object) -> dict[str, object]:
    return {"text": text, "format": "guess", "notes": "", **fields}


def test_a_pasted_definition_is_published_and_logged(publisher, engine) -> None:
    response = publisher.post(ADD, posted(json.dumps(door()), notes="first", publish="Publish"), follow=True)
    assert "door v1 is the current version." in response.content.decode()
    assert engine.machines() == {"door": 1}
    version = MachineVersion.objects.get()
    assert (version.notes, version.published_by.username) == ("first", "paula")
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id) == ("paula", str(version.machine.pk))
    assert entry.change_message == f"Published version 1 ({version.digest})."


@pytest.mark.parametrize(
    ("name", "text"), [("door.json", json.dumps(door())), ("door.yaml", YAML), ("door.YML", YAML), ("door", YAML)]
)
def test_a_file_is_uploaded_in_either_format(publisher, engine, name: str, text: str) -> None:
    file = SimpleUploadedFile(name, text.encode())
    publisher.post(ADD, posted(file=file, publish="Publish"))
    assert engine.machines() == {"door": 1}


def test_every_readable_format_is_offered(publisher, engine) -> None:
    page = publisher.get(ADD).content.decode()
    for name in READERS:
        assert f'<option value="{name}">{FORMATS[name]}</option>' in page


def test_what_stately_exports_is_published(publisher, engine) -> None:
    states = '{ Shut: { on: { open: "Open" } }, Open: { on: { shut: "Shut" } } }'
    script = f'export const machine = createMachine({{ id: "door", initial: "Shut", states: {states} }});'
    publisher.post(ADD, posted(file=SimpleUploadedFile("door.ts", script.encode()), publish="Publish"))
    assert engine.machines() == {"door": 1}


def test_what_cannot_be_published_comes_back_as_a_draft_to_go_on_with(publisher, engine) -> None:
    config = {"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"open": {"guard": {"type": "isOpen"}}}}}}
    file = SimpleUploadedFile("door.xstate.json", json.dumps(config).encode())
    response = publisher.post(ADD, posted(file=file, publish="Publish"))
    page = response.content.decode()
    assert response.status_code == 400
    assert "SB140" in page
    assert "&quot;guard&quot;: &quot;isOpen&quot;" in page
    assert '<option value="json" selected>' in page


def test_the_same_document_again_is_no_new_version_and_not_logged(publisher, engine) -> None:
    for _ in range(2):
        page = publisher.post(ADD, posted(json.dumps(door()), publish="Publish"), follow=True).content.decode()
    assert "No change: door v1 already has this content." in page
    assert LogEntry.objects.count() == 1


def test_checking_publishes_nothing_and_shows_the_diagram(publisher, engine) -> None:
    page = publisher.post(ADD, posted(json.dumps(door()), check="Check only")).content.decode()
    assert "Ready to publish: no findings." in page
    assert 'class="sb-diagram"' in page
    assert engine.machines() == {}


def test_a_checked_file_comes_back_as_text_to_publish(publisher, engine) -> None:
    file = SimpleUploadedFile("door.yaml", YAML.encode())
    page = publisher.post(ADD, posted(file=file, check="Check only")).content.decode()
    assert "&quot;initial&quot;: &quot;Shut&quot;" in page


def test_every_finding_is_shown_with_code_path_and_hint(publisher, engine) -> None:
    response = publisher.post(ADD, posted(json.dumps(BROKEN), publish="Publish"))
    page = response.content.decode()
    assert response.status_code == 400
    assert "Cannot be published: 2 errors" in page
    assert "SB101" in page
    assert "states.Shut.on.open" in page
    assert "did you mean &quot;Open&quot;?" in page
    assert "SB109" in page
    assert "Opne" in page
    assert not Machine.objects.exists()


def test_warnings_are_shown_and_do_not_stop(publisher, engine) -> None:
    trap = door(states={"Shut": {"on": {"open": "Open"}}, "Open": {}})
    page = publisher.post(ADD, posted(json.dumps(trap), check="Check only")).content.decode()
    assert "Ready to publish: 1 warning." in page
    publisher.post(ADD, posted(json.dumps(trap), publish="Publish"))
    assert engine.machines() == {"door": 1}


def test_the_form_starts_with_the_machines_current_definition(publisher, engine) -> None:
    publisher.post(ADD, posted(json.dumps(wider_door()), publish="Publish"))
    page = publisher.get(f"{ADD}?machine=door").content.decode()
    assert "Publish a new version of door" in page
    assert "&quot;lift&quot;: &quot;Off&quot;" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Paste a definition, or choose a file."),
        ('{"id": "x",', "SB131"),
        ('{"id": NaN}', "SB133"),
        ("[1, 2]", "SB104"),
        ('{"id": "x", "id": "y"}', "SB132"),
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("[" * 100, "SB1"),
    ],
)
def test_text_that_is_no_definition_is_explained(publisher, engine, text: str, said: str) -> None:
    response = publisher.post(ADD, posted(text, publish="Publish"))
    assert response.status_code == 400
    assert said in response.content.decode()


def test_a_file_that_is_too_large_or_not_text_is_explained(publisher, engine) -> None:
    large = SimpleUploadedFile("x.json", b"{" + b" " * (10 << 20))
    assert b"SB111" in publisher.post(ADD, posted(file=large, publish="Publish")).content
    binary = SimpleUploadedFile("x.json", b"\x89PNG\x00\xff")
    assert b"SB134" in publisher.post(ADD, posted(file=binary, publish="Publish")).content


def test_publishing_takes_a_csrf_token(machine, staff) -> None:
    client = staff("view", "publish")
    client.handler.enforce_csrf_checks = True
    assert client.post(ADD, posted(json.dumps(door()), publish="Publish")).status_code == 403
    assert not Machine.objects.filter(name="door").exists()
