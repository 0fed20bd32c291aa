"""``manage.py machine verify``."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from machines.catalog.editing.runs import decode
from tests.engine.builders import door, machine

BROKEN = machine("broken", {"A": {"on": {"go": "B"}}, "B": {}, "C": {"type": "final"}})


def run(*words):
    out = StringIO()
    try:
        call_command("machine", "verify", *words, stdout=out)
    except CommandError as error:
        return out.getvalue(), str(error)
    return out.getvalue(), ""


@pytest.fixture
def written(tmp_path, engine):
    def write(definition):
        path = tmp_path / f"{definition['id']}.json"
        path.write_text(json.dumps(definition), encoding="utf-8")
        return str(path)

    return write


def test_a_sound_machine_passes(written):
    text, error = run(written(door()), "--fail-on", "undecided")
    assert not error
    assert "proven: SB801: every state is reached" in text
    assert text.endswith("proven, 0 undecided\n")


def test_what_was_found_fails_the_command_and_shows_its_run(written, engine):
    text, error = run(written(BROKEN))
    assert "found: SB803 states.B" in text
    assert "  run: go\n" in text
    (link,) = {line.partition(": ")[2] for line in text.splitlines() if line.startswith("  try it: ")}
    address, _, packed = link.partition("?run=")
    assert address == "/machines/broken/try/"
    records = engine.simulate(BROKEN, decode(packed).steps)
    assert records[-1].state == "B", "the link plays what was found"
    assert error.endswith("found")
    assert run(written(BROKEN), "--fail-on", "never")[1] == ""


def test_json_has_all_of_it(written):
    found = json.loads(run(written(BROKEN), "--json", "--fail-on", "never")[0])
    assert found["machine"] == "broken"
    assert found["counts"]["found"] == sum(one["verdict"] == "found" for one in found["findings"])
    assert {"code", "path", "message", "hint", "severity", "verdict", "run", "data"} == set(found["findings"][0])


def test_a_published_machine_by_its_name(engine):
    engine.publish(door())
    assert "door: 0 found" in run("door")[0]


def test_a_name_that_nothing_has(engine):
    assert "no machine 'nobody'" in run("nobody")[1]
