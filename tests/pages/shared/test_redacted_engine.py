"""The engine as a page reads it: what is not listed there cannot be asked."""

from __future__ import annotations

import inspect

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from guardian.shortcuts import assign_perm

from dashboard.shared.redacted_engine import RedactedEngine
from machines.audit.redaction import MASK
from machines.catalog.publishing import adopt
from machines.connections import get_engine
from machines.engine import BadInput, Engine
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from tests.cases import for_each
from tests.vault import NAME, PIN, SECRET, Filled, fill

PASSED = {"live", "queues", "index_progress", "waits", "versions", "definition", "diff", "rollout", "version_figures"}
"""Counts, times, names and definitions of one machine."""
SCOPED = {"machines", "survey", "rollouts", "find_machines", "find_indexed", "find_words", "queue_names"}
GIVEN = {"simulate", "verify"}
"""Of definitions that the person brings."""
REDACTED = {
    "tally", "inspect", "explain_all", "redactor", "get", "get_many", "history", "explain", "find", "find_ids", "job",
    "jobs", "problems", "replay",
}  # fmt: skip
OWN = {"redactor", "find_ids", "find_words"}
LISTED = PASSED | SCOPED | GIVEN | REDACTED


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


class NewerEngine(Engine):
    def payloads(self, machine: str) -> list[str]:
        return ["secret"]


def test_only_what_is_listed_can_be_asked():
    assert public(RedactedEngine) == LISTED
    assert public(RedactedEngine) - OWN <= public(Engine)
    assert "__getattr__" not in vars(RedactedEngine)


def test_a_new_method_of_the_engine_is_refused_until_it_is_listed(engine):
    newer = NewerEngine(engine.client, prefix=engine.keys.prefix)
    assert newer.payloads("order") == ["secret"]
    seen = RedactedEngine(Actor("somebody"), newer)
    for name in sorted(public(NewerEngine) - LISTED):
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
    return RedactedEngine(actor), filled


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
        redacted.get_many(NAME, ids),
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


@pytest.fixture
def narrow(engine, db) -> RedactedEngine:
    """What a person sees who may see ``order`` and no other machine."""
    for name in ("order", "private"):
        engine.publish(
            {
                "id": name, "initial": "A", "index": ["instance.id"],
                "states": {"A": {"invoke": {"src": "work", "queue": f"of-{name}"}}},
            }
        )  # fmt: skip
        engine.create(name, "x-1")
    user = get_user_model().objects.create_user("nora")
    assign_perm("view_machine", user, adopt("order"))
    return RedactedEngine(Actor(user, "page"))


def test_machines_out_of_scope_are_not_named(narrow):
    both, view = ["order", "private"], narrow
    told = [
        view.machines(), view.survey().lives, view.survey().queues, view.rollouts(),
        view.find_machines("x-1", both), view.find_indexed("instance.id", both), view.queue_names(both),
    ]  # fmt: skip
    assert "private" not in repr(told)
    assert [list(view.machines()), view.find_machines("x-1", both), view.find_indexed("instance.id", both)] == [
        ["order"]
    ] * 3
    assert list(view.queue_names(both)) == [("order", "of-order")]


@for_each("name", sorted(PASSED | REDACTED - {"redactor", "replay"}))
def test_a_machine_out_of_scope_answers_nothing(narrow, name):
    """Each method of one machine asks for the right itself: a page cannot forget to."""
    further = {
        "diff": (1, 1), "waits": ("x-1",), "get": ("x-1",), "get_many": (["x-1"],), "history": ("x-1",),
        "inspect": ("x-1",), "explain": ("x-1", "go"), "explain_all": ("x-1", ["go"]), "find_ids": ("x", 9),
        "job": ("0-1",), "jobs": ("of-private",), "problems": ("private", ["x-1"])[1:],
    }  # fmt: skip
    getattr(narrow, name)("order", *further.get(name, ()))
    with pytest.raises(Forbidden):
        getattr(narrow, name)("private", *further.get(name, ()))


def test_a_definition_is_played_and_the_name_of_a_machine_out_of_scope_is_not(narrow):
    assert narrow.simulate("order", [])
    with pytest.raises(Forbidden):
        narrow.simulate("private", [])
    with pytest.raises(Forbidden):
        narrow.verify("private")
