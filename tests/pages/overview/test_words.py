"""Words in the box of the bar: they are found in everything that a person may see, in any machine; hits say where."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse
from guardian.shortcuts import assign_perm

from machines.catalog import publishing
from machines.engine import UnknownMachine
from machines.engine.instances.retirement import FinishedInstance
from machines.engine.records import PartialList
from machines.instances import words
from machines.instances.archive.store import get_archive
from machines.instances.models import ArchivedInstance
from machines.models import Machine
from tests.engine.builders import door, publish
from tests.jobs.failures.conftest import die, follow

__all__ = ["die", "follow"]

LEDGER = {
    "id": "ledger",
    "initial": "Open",
    "context": {"customer": "", "lines": []},
    "states": {"Open": {"tags": ["unpaid"], "on": {"pay": "Paid"}}, "Paid": {"description": "Acme's money came"}},
}


@pytest.fixture
def ledger(engine, db) -> str:
    publishing.publish(LEDGER)
    engine.create("ledger", "one", {"customer": 'The "Acme" & Co'})
    engine.create("ledger", "two", {"lines": [{"to": "ACME"}]})
    return "ledger"


def search(client, asked: str, **more: str):
    return client.get(reverse("signalbox:search"), {"q": asked, "all": "1", **more})


def found(answer) -> list[tuple[str, str, str, list[str]]]:
    return [(hit.kind, hit.name, hit.of, list(hit.places)) for hit in answer.context["words"].hits]


def archive(machine: str, version: int, id: str, **data: str) -> None:
    raw = {"_version": "2", "_state": "Paid", "_entered": "9", "_created": "5", "_def": f"{version}:x", **data}
    step = '[1,5,"(create)","Paid","",0,0,0,0]'
    get_archive().write([ArchivedInstance.of(FinishedInstance(machine, id, raw, [step]), (), 99)])


def test_a_word_is_found_in_data_and_definitions_and_opens_what_holds_it(as_, ledger, waiting, engine):
    engine.create("activation", "acme-7")
    client = as_("viewer")
    answer = search(client, "acme")
    assert found(answer) == [
        ("definition", "ledger", "ledger", ["state Paid"]),
        ("instance", "acme-7", "activation", ["id"]),
        ("instance", "one", "ledger", ["data customer"]),
        ("instance", "two", "ledger", ["data lines"]),
    ]
    assert found(search(client, '"Acme" &')) == [("instance", "one", "ledger", ["data customer"])]
    assert found(search(client, "UNPAID two")) == [("instance", "two", "ledger", ["id", "tag unpaid"])]
    assert found(search(client, "acme nowhere")) == []
    for link in re.findall(r'href="([^"]+)"', answer.content.decode().split('id="words"')[1].split("</section>")[0]):
        assert client.get(html.unescape(link)).status_code == 200


def test_what_failed_and_the_input_of_a_job_are_found(as_, engine, db):
    work = {"src": "pay", "input": {"to": "town"}}
    engine.publish({"id": "fetch", "initial": "A", "context": {"town": ""}, "states": {"A": {"invoke": work}}})
    engine.create("fetch", "late", {"town": "Genoa"})
    client = as_("viewer")
    (waits,) = engine.get("fetch", "late").jobs
    answer = search(client, '"to":"genoa"')
    assert found(answer) == [("job", waits, "fetch", ["input of pay"])]
    assert client.get(answer.context["words"].hits[0].url).status_code == 200
    assert found(search(client, "genoa")) == [("instance", "late", "fetch", ["data town"])]
    job = engine.take("fetch", "pay", worker="w")[0]
    engine.fail(job, "the warehouse burnt down", kind="Fire", retry=False)
    assert found(search(client, "burnt")) == [("instance", "late", "fetch", ["error"])]


def test_errors_and_jobs_without_an_instance_are_found(as_, die, follow, engine):
    die("late", error="no route to Genoa", kind="Lost")
    follow()
    kept = engine.enqueue("errand", "fetch", {"from": ["Genoa"]})
    lost = engine.enqueue("errand", "mend", {"at": "sea"})
    engine.fail(engine.take("errand", "mend", worker="w")[0], "Genoa is away", retry=False)
    client = as_("viewer")
    answer = search(client, "genoa")
    assert [hit for hit in found(answer) if hit[0] != "instance"] == [
        ("error group", "Lost in work", "errand", ["no route to Genoa"]),
        ("job", lost.id, "errand", ["error of mend"]),
        ("job", kept.id, "errand", ["input of fetch"]),
    ]
    for hit in answer.context["words"].hits:
        assert client.get(hit.url).status_code == 200


def test_of_many_jobs_the_first_are_searched_and_the_page_says_so(as_, die, engine, monkeypatch):
    die("late")
    monkeypatch.setattr("machines.jobs.search.BUDGET", 1)
    engine.enqueue("errand", "fetch", {"from": "Oslo"})
    engine.enqueue("errand", "mend", {"from": "Genoa"})
    answer = search(as_("viewer"), "genoa")
    assert found(answer) == []
    assert "Searched the first 1 open job without an instance" in " ".join(answer.content.decode().split())


def test_a_search_that_had_no_time_for_jobs_says_so(as_, die, engine, monkeypatch):
    die("late")
    engine.enqueue("errand", "mend", {"from": "Genoa"})
    monkeypatch.setattr("machines.jobs.search.BUDGET", 0)
    text = " ".join(search(as_("viewer"), "genoa").content.decode().split())
    assert "There was no time to search jobs without an instance: the page of a queue finds others." in text


def test_jobs_of_instances_use_up_none_of_that(as_, die, engine, monkeypatch):
    die("late")
    lost = engine.enqueue("errand", "mend", {"from": "Genoa"})
    monkeypatch.setattr("machines.jobs.search.BUDGET", 1)
    assert found(search(as_("viewer"), "genoa")) == [("job", lost.id, "errand", ["input of mend"])]


def test_a_machine_that_goes_as_its_jobs_are_searched_is_left_out(as_, die, engine, monkeypatch):
    die("late")
    kept = engine.enqueue("errand", "fetch", {"from": "Genoa"})
    publish(engine, door())
    engine.enqueue("door", "work", {"from": "Genoa"})
    list_jobs = type(engine).jobs

    def refuse(engine, machine, *args, **more):
        if machine == "door":
            raise UnknownMachine("no machine 'door'")
        return list_jobs(engine, machine, *args, **more)

    monkeypatch.setattr(type(engine), "jobs", refuse)
    assert found(search(as_("viewer"), "genoa")) == [("job", kept.id, "errand", ["input of fetch"])]


def test_a_machine_whose_jobs_did_not_all_answer_is_named(as_, die, engine, monkeypatch):
    die("late")
    missing = PartialList(missing=[engine.keys.partition("errand").root])
    monkeypatch.setattr(type(engine), "jobs", lambda *_, **__: missing)
    assert "No answer from errand" in search(as_("viewer"), "genoa").content.decode()


def test_archived_instances_are_found_by_their_data(as_, ledger, engine):
    archive("ledger", 1, "gone", customer="Acme of old")
    answer = search(as_("viewer"), "of old")
    assert found(answer) == [("archived instance", "gone", "ledger", ["data customer"])]
    assert answer.context["words"].looked == 3


def test_one_budget_holds_for_all_machines_and_the_page_goes_on(as_, ledger, waiting, engine, monkeypatch):
    for number in range(5):
        engine.create("ledger", f"more-{number}", {"customer": "Acme"})
    monkeypatch.setattr(words, "BUDGET", 3)
    client = as_("viewer")
    answer, names = search(client, "acme"), []
    for _ in range(10):
        names += [name for kind, name, _, _ in found(answer) if kind == "instance"]
        page = " ".join(answer.content.decode().split())
        onward = re.search(r'rel="next" href="([^"]+)#words"', page)
        if not onward:
            break
        looked = answer.context["words"].looked
        assert f"Searched {looked}{' of 8' if looked < 8 else ''} instances" in page
        answer = client.get(reverse("signalbox:search") + html.unescape(onward[1]))
    assert sorted(names) == sorted(["one", "two", *(f"more-{number}" for number in range(5))])
    assert answer.context["words"].looked == 8


def test_a_page_that_is_full_goes_on_behind_its_last_hit(as_, ledger, engine):
    for number in range(30):
        engine.create("ledger", f"more-{number}", {"customer": "Acme"})
    client = as_("viewer")
    first = search(client, "acme", all="1")
    page = first.content.decode()
    assert "More may follow." in page
    onward = re.search(r'rel="next" href="([^"]+)#words"', page)[1]
    second = client.get(reverse("signalbox:search") + html.unescape(onward))
    names = [name for kind, name, _, _ in found(first) + found(second) if kind == "instance"]
    assert (len(names), len(set(names))) == (32, 32)
    assert second.context["words"].cursor == ""


def test_machines_out_of_scope_are_not_searched(user_of, client, ledger, engine):
    publishing.publish(LEDGER | {"id": "other"})
    engine.create("other", "hers", {"customer": "Acme"})
    user = user_of("nobody", "zoe")
    assign_perm("machines.view_machine", user, Machine.objects.get(name="other"))
    client.force_login(user)
    archive("ledger", 1, "gone", customer="Acme")
    assert [name for _, name, _, _ in found(search(client, "acme"))] == ["other", "hers"]
    assert found(search(client, "acme", after="0:ledger:")) == [("instance", "hers", "other", ["data customer"])]


@pytest.mark.parametrize("after", ["x", "1:", "9:ledger:", "0:nothing:1", "1:ledger:", ":::"])
def test_an_odd_place_to_go_on_from_is_answered(as_, ledger, after):
    assert search(as_("viewer"), "acme", after=after).status_code == 200


def test_too_many_words_are_no_search(as_, ledger):
    assert found(search(as_("viewer"), " ".join("abcdefghij"))) == []
