"""A definition is read, checked and compiled once on its way in, whichever way it comes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from machines.catalog import offload
from machines.catalog.offload import TASKS, HelperResult
from machines.catalog.versions import publication as definitions
from machines.engine.definitions import (
    CompiledDefinition,
    check,
    compile,
    compile_definition,
    compiled,
    find_embedded,
    find_recipients,
    outline,
    program,
)
from machines.models import MachineVersion
from machines.people.actor import Actor

NEST: dict[str, Any] = {
    "id": "nest",
    "initial": "Empty",
    "context": {"type": "object", "properties": {"eggs": {"type": "integer", "default": 0}}},
    "events": {"lay": {"payload": {"count": {"type": "integer", "required": True}}}},
    "machines": {
        "egg": {"initial": "Whole", "states": {"Whole": {"on": {"hatch": "Open"}}, "Open": {"type": "final"}}},
    },
    "states": {
        "Empty": {"on": {"lay": {"target": "Full", "actions": {"set": {"eggs": "event.count"}}}}},
        "Full": {"invoke": {"src": "machine:egg", "onDone": "Empty"}},
    },
}  # fmt: skip


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often anything was read, made into a program and outlined; helpers work in this process, as JSON still."""
    counted: Counter[str] = Counter()

    def count(place: Any, name: str) -> None:
        real = getattr(place, name)

        def counting(given: Any, *more: Any) -> Any:
            counted[f"{name} {given['id'] if isinstance(given, dict) else given.id}"] += 1
            return real(given, *more)

        monkeypatch.setattr(place, name, counting)

    def run(task: str, text: str | bytes, *, who: str, cpu: float, **words: Any) -> HelperResult:
        return HelperResult(json.loads(json.dumps(TASKS[task](text, **words), default=str)), 0.0)

    count(compiled, "read_document")
    count(compiled, "build_outline")
    count(compiled, "build_program")
    count(program, "build_program")
    monkeypatch.setattr(offload, "run", run)
    return counted


def published() -> set[str]:
    return set(MachineVersion.objects.values_list("machine__name", flat=True))


ONCE = {
    "read_document nest": 1,
    "build_program nest": 1, "build_program nest.egg": 1,
    "build_outline nest": 1, "build_outline nest.egg": 1,
}  # fmt: skip


@pytest.mark.parametrize("body", [{"definition": NEST}, {"text": json.dumps(NEST), "format": "json"}])
def test_by_the_api(work, engine, admin_client, body):
    sent = json.dumps(body | {"reason": "first"})
    answer = admin_client.post("/api/v1/machines", sent, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert (dict(work), published()) == (ONCE, {"nest", "nest.egg"})


@pytest.mark.parametrize("verb", ["publish", "import"])
def test_by_the_command(work, engine, db, tmp_path: Path, verb):
    file = tmp_path / "nest.json"
    file.write_text(json.dumps(NEST), encoding="utf-8")
    call_command("machine", verb, str(file), *(["--publish"] if verb == "import" else []))
    assert (dict(work), published()) == (ONCE, {"nest", "nest.egg"})


def test_by_a_script_with_or_without_django(work, engine, db):
    definitions.publish(Actor.console(), NEST)
    assert dict(work) == ONCE
    work.clear()
    engine.publish(NEST | {"id": "other"})
    assert dict(work) == {"read_document other": 1, "build_program other": 1, "build_program other.egg": 1}


def test_the_same_document_again_compiles_nothing_else(work, engine, db):
    first = definitions.publish(Actor.console(), NEST)
    definitions.publish(Actor.console(), NEST)  # reads the version that counts, whose rules decide, once
    work.clear()
    assert definitions.publish(Actor.console(), NEST) == first
    assert dict(work) == {
        "read_document nest": 1, "build_program nest": 1, "build_program nest.egg": 1, "build_outline nest": 1,
    }  # fmt: skip


def test_a_change_of_words_alone_compiles_only_what_changed(work, engine, db):
    definitions.publish(Actor.console(), NEST)
    work.clear()
    assert definitions.publish(Actor.console(), NEST | {"description": "of a bird"}).number == 2
    assert work["read_document nest"] == 1


def test_it_holds_what_the_single_functions_say():
    made = compile_definition(NEST)
    assert compile_definition(made) is made
    assert (made.source, list(made.findings), made.has_errors) == (NEST, check(NEST), False)
    assert (made.program, made.outline, made.recipients) == (compile(NEST), outline(NEST), find_recipients(NEST))
    assert {name: inner.source for name, inner in made.along.items()} == find_embedded(NEST)
    assert {name: inner.program for name, inner in made.along.items()} == {
        name: compile(inner) for name, inner in find_embedded(NEST).items()
    }


def test_another_process_gets_the_same():
    made = compile_definition(NEST)
    got = CompiledDefinition.from_dict(json.loads(json.dumps(made.as_dict())))
    assert (got.source, got.findings, got.runs, got.digest) == (made.source, made.findings, True, made.digest)
    assert (got.program, got.outline, got.recipients) == (made.program, made.outline, made.recipients)
    assert got.along["nest.egg"].program == made.along["nest.egg"].program
