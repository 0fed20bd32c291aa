"""The machines come with the first run, and an operator's own version of them stays."""

from __future__ import annotations

import pytest

from machines.catalog import builtin_machines
from machines.engine.definitions import check
from machines.mapreduce.store import CHUNK, RUN

from .builders import made, worked


@pytest.mark.pure
@pytest.mark.parametrize("name", [RUN, CHUNK])
def test_what_is_shipped_has_no_findings(name):
    assert [str(finding) for finding in check(builtin_machines.definition(name))] == []
    assert builtin_machines.definition(name)["id"] == name


def test_the_first_run_publishes_and_the_next_one_does_not(engine):
    made(engine)
    made(engine)
    assert engine.machines() == {RUN: 1, CHUNK: 1}


def test_a_version_of_an_operator_stays(engine):
    made(engine)
    own = builtin_machines.definition(CHUNK)
    own["states"]["working"]["invoke"]["retry"]["attempts"] = 9
    engine.publish(own)
    assert worked(engine, made(engine, [1, 2])) == 3
    assert engine.machines()[CHUNK] == 2
    del own["meta"]  # as those of the first release
    engine.publish(own)
    made(engine)
    assert (engine.machines()[CHUNK], engine.definition(CHUNK)) == (4, builtin_machines.definition(CHUNK))


def test_a_newer_release_brings_its_own(engine):
    old = builtin_machines.definition(RUN)
    old["meta"]["release"] = 0
    engine.publish(old)
    made(engine)
    assert engine.machines() == {RUN: 2, CHUNK: 1}
    assert engine.definition(RUN) == builtin_machines.definition(RUN)
