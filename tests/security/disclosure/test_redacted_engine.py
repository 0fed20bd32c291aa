"""The engine as a page reads it: what is not listed there cannot be asked."""

from __future__ import annotations

import inspect

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from dashboard.shared.redacted_engine import RedactedEngine
from machines.catalog.redaction import MASK, Redactor
from machines.connections import get_engine
from machines.engine import BadInput, Engine
from machines.people.actor import Actor
from tests.vault import NAME, PIN, SECRET, Filled, fill

PASSED = {"live", "tally", "index_progress", "waits", "diff", "rollout", "version_figures"}
REDACTED = {"inspect", "explain_all", "redactor", "get", "history", "explain", "find", "job", "jobs", "problems"}


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


class NewerEngine(Engine):
    def payloads(self, machine: str) -> list[str]:
        return ["secret"]


def test_only_what_is_listed_can_be_asked():
    assert public(RedactedEngine) == PASSED | REDACTED
    assert public(RedactedEngine) - {"redactor"} <= public(Engine)
    assert "__getattr__" not in vars(RedactedEngine)


def test_a_new_method_of_the_engine_is_refused_until_it_is_listed(engine):
    newer = NewerEngine(engine.client, prefix=engine.keys.prefix)
    assert newer.payloads("order") == ["secret"]
    seen = RedactedEngine(newer, Actor("somebody"), "order", Redactor())
    for name in sorted(public(NewerEngine) - PASSED - REDACTED):
        with pytest.raises(AttributeError):
            getattr(seen, name)
    for name in ("client", "keys"):
        with pytest.raises(AttributeError):
            getattr(seen, name)


@pytest.fixture
def seen(engine, db) -> tuple[RedactedEngine, Filled]:
    """What somebody with ``view`` alone sees of a machine with secrets."""
    filled = fill(engine)
    user = get_user_model().objects.create_user("vera")
    user.user_permissions.add(Permission.objects.get(codename="view_machine"))
    actor = Actor(user, "page")
    return RedactedEngine(get_engine(), actor, NAME), filled


def test_what_is_passed_on_tells_nothing_that_is_hidden(seen):
    redacted, filled = seen
    ids = [one.id for one in redacted.find(NAME).instances]
    told = [
        redacted.live(NAME),
        redacted.tally(NAME, error="any"),
        redacted.index_progress(NAME),
        [redacted.waits(NAME, id) for id in ids],
        redacted.problems(NAME, ids),
        [redacted.get(NAME, id) for id in ids],
        [redacted.history(NAME, id) for id in ids],
        redacted.job(NAME, filled.dead),
    ]
    assert [secret for secret in (SECRET, PIN) if secret in repr(told)] == []
    texts = [one.text for wrong in redacted.problems(NAME, ids).values() for one in wrong]
    assert texts
    assert set(texts) <= {MASK, ""}


def test_figures_of_a_search_do_not_tell_what_is_hidden(seen):
    redacted, _ = seen
    (field, *_) = sorted(get_engine().sensitive(NAME).data)
    with pytest.raises(BadInput) as refused:
        redacted.tally(NAME, where={field: SECRET})
    assert refused.value.code == "SB439"
