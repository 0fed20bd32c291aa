"""``Engine.plan`` and ``Engine.check_plan`` read the published versions."""

from __future__ import annotations

import pytest

from machines.engine import BadInput, DefinitionError, MigrationPlan, PlanError, UnknownMachine
from machines.engine.definitions import compile_definition
from machines.engine.versions import content
from tests.engine.aio.awaited import AwaitedEngine

from ..content import ORDER, change, rename


@pytest.fixture
def published(engine):
    engine.publish(ORDER)
    engine.publish(rename(ORDER, "Paying", "Charging"))
    engine.publish(change(description="the third"))
    return engine


def test_a_plan_is_for_every_other_version(published):
    made = published.plan("order", 3, states={"Charging": "Paying"})
    assert [source.version for source in made.sources] == [1, 2]
    assert made.sources[0].states["Paying"] == made.sources[1].states["Charging"] == ("Paying",)
    instance = published.create("order", version=1)
    assert made.sources[0].key == published.client.hget(_key(published, instance.id), "_def")


def _key(engine, id):
    return next(key for key in engine.client.scan_iter(f"*{id}*") if engine.client.type(key) == "hash")


def test_a_plan_for_some_versions(published):
    assert [source.version for source in published.plan("order", 1, from_versions=[3]).sources] == [3]


def test_unknown_versions(published):
    for arguments in ({"to": 9}, {"to": 2, "from_versions": [1, 9]}):
        with pytest.raises(UnknownMachine) as caught:
            published.plan("order", **arguments)
        assert caught.value.version == 9
    with pytest.raises(UnknownMachine):
        published.plan("nothing", 1)
    with pytest.raises(PlanError) as error:
        published.plan("order", 2, from_versions=[2])
    assert [one.code for one in error.value.findings] == ["SB601"]


def test_a_stored_plan_is_compared_with_what_is_published(published):
    made = MigrationPlan.from_dict(
        published.plan("order", 2, from_versions=[1], states={"Paying": "Charging"}).as_dict()
    )
    assert published.check_plan(made) == []
    assert published.check_plan(made.inverse()) == []
    found = made.as_dict()
    for part in (found["sources"][0], found["sources"][0]["back"]):
        part |= dict.fromkeys(("digest", "to_digest"), "0" * 12)
    del found["id"]
    with pytest.raises(PlanError) as caught:
        published.check_plan(MigrationPlan.from_dict(found))
    assert caught.value.code == "SB606"


def test_versions_and_drafts_are_compared(published):
    found = published.diff("order", 1, 2)
    assert (found.a, found.b, found.verdict) == (1, 2, "needs a mapping")
    draft = published.diff("order", 1, change(states__Held__description="waits"))
    assert (draft.a, draft.b) == (1, None)
    assert draft.text.startswith("--- order v1\n+++ order draft\n")
    with pytest.raises(UnknownMachine):
        published.diff("order", 1, 9)
    with pytest.raises(DefinitionError):
        published.diff("order", change(initial="Nowhere"), 1)
    with pytest.raises(BadInput, match="one of machine 'other'"):
        published.diff("order", 1, change(id="other"))


def test_the_asynchronous_engine_makes_the_same_plan(published, redis_url, prefix):
    awaited = AwaitedEngine(redis_url, published, prefix=prefix)
    try:
        made = awaited.plan("order", 3)
        assert made == published.plan("order", 3)
        assert awaited.check_plan(made) == list(made.findings)
        assert awaited.diff("order", 1, 2) == published.diff("order", 1, 2)
    finally:
        awaited.close()


def test_a_version_is_compiled_once_for_its_plan_its_dry_run_and_its_move(engine, monkeypatch):
    compiled: list[str] = []

    def compile_counted(definition):
        compiled.append(definition["id"])
        return compile_definition(definition)

    monkeypatch.setattr(content, "compile_definition", compile_counted)
    content._compile.cache_clear()
    for name in ("Fresh", "Fresher"):
        engine.publish({"id": "once", "initial": "A", "states": {"A": {"on": {"go": name}}, name: {}}})
    engine.create("once", "one")
    plan = engine.plan("once", 2)
    engine.dry_run(plan)
    engine.migrate(plan)
    assert compiled == ["once", "once"]
