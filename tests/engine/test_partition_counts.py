"""Over how many partitions a machine is spread: the definition's number, else the engine's; it never changes."""

from __future__ import annotations

import pytest

from machines.engine import DefinitionError, Engine
from machines.engine.definitions import compile_definition
from machines.engine.limits import MAX_PARTITIONS
from tests.engine.builders import door, machine


def test_the_definition_goes_before_the_engine_and_the_first_publication_counts(engine, prefix):
    several = Engine(engine.client, prefix=prefix, partitions=3)
    several.publish(door())
    assert several.count_partitions("door") == 3
    several.publish(door() | {"id": "gate", "partitions": 5})
    assert several.count_partitions("gate") == 5
    published = engine.publish(door() | {"id": "gate", "partitions": 2})
    assert engine.count_partitions("gate") == 5
    assert [finding.code for finding in published.findings] == ["SB218"]
    assert "machine repartition gate --to 2" in published.findings[0].hint
    assert engine.publish(door() | {"id": "gate", "partitions": 5}).findings == []


def test_an_embedded_machine_has_a_number_of_its_own(engine):
    inner = {"initial": "a", "partitions": 2, "states": {"a": {}}}
    engine.publish(machine("outer", {"on": {"invoke": {"src": "machine:inner"}}}, machines={"inner": inner}))
    assert (engine.count_partitions("outer"), engine.count_partitions("outer.inner")) == (1, 2)


@pytest.mark.parametrize("partitions", [0, -1, MAX_PARTITIONS + 1, "4", 1.5, True, None])
def test_any_other_number_is_a_finding(engine, partitions):
    with pytest.raises(DefinitionError) as caught:
        engine.publish(door() | {"partitions": partitions})
    assert [finding.path for finding in caught.value.findings] == ["partitions"]


def test_a_compiled_definition_that_comes_from_another_process_keeps_it():
    compiled = compile_definition(door() | {"partitions": 7})
    assert type(compiled).from_dict(compiled.as_dict()).partitions == 7
