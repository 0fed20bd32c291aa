"""What histories say, on the page: figures, the instances behind them, and who may see what."""

from __future__ import annotations

import html
import re
import time

import duckdb
import pytest

from machines.insight import questions
from machines.insight.facts import CREATE, Case, VersionFacts
from machines.insight.store import get_store
from machines.models import AuditEntry
from tests.cases import for_each
from tests.configuration import configure

from .conftest import add_jobs, write_facts

PAGE = "/machines/activation/insight/"


@pytest.fixture
def viewer(facts, as_):
    return as_("viewer")


def read(client, query: str = "", status: int = 200) -> str:
    answer = client.get(PAGE + query)
    assert answer.status_code == status
    return html.unescape(answer.content.decode())


def test_it_says_how_to_turn_it_on(activation, as_, settings):
    configure(settings, INSIGHT=None)
    assert 'SIGNALBOX = {"INSIGHT"' in read(as_("viewer"))


def test_the_diagram_shows_shares_and_times(facts, as_):
    client = as_("viewer")
    page = read(client)
    assert "11 instances" in re.sub(r"<[^>]*>", "", page)
    assert re.search(r'data-state="Active".*?class="count"[^>]*>91 %<', page, re.DOTALL)
    assert re.search(r'data-state="Waiting".*?class="count"[^>]*>1 min<', read(client, "?figure=p50"), re.DOTALL)
    assert "Removed" in page  # a state that is gone is in the table


def test_facts_of_a_database_have_the_same_page(activation, as_, settings, tmp_path):
    configure(settings, INSIGHT="database:default", HOME=tmp_path)
    write_facts(get_store(), activation)
    page = read(as_("viewer"), "?figure=p50")
    assert "11 instances" in re.sub(r"<[^>]*>", "", page)
    assert re.search(r'data-state="Waiting".*?class="count"[^>]*>1 min<', page, re.DOTALL)


def test_the_diagram_counts_states_of_regions(facts, engine, as_):
    door = {"initial": "Open", "states": {"Open": {"on": {"shut": "Shut"}}, "Shut": {}}}
    lamp = {"initial": "Dark", "states": {"Dark": {"on": {"light": "Lit"}}, "Lit": {}}}
    engine.publish({"id": "room", "initial": "All",
                    "states": {"All": {"type": "parallel", "states": {"Door": door, "Lamp": lamp}}}})  # fmt: skip
    case, entries = Case(1, "a", 1000), [[1, 1000, CREATE, ["Open", "Dark"], "", ""]]
    steps = case.add([*entries, [2, 2000, "light", ["Open", "Lit"], "", ""]], 1, {})
    facts.append("room", facts.manifest("room"), steps, [case.row()], number=2, marks={"0": 5000})
    page = as_("viewer").get("/machines/room/insight/").content.decode()
    counted = {part.partition('"')[0] for part in page.split('data-state="')[1:]
               if re.search(r'class="count"[^>]*>100 %<', part)}  # fmt: skip
    assert counted == {"Open", "Dark", "Lit"}


def test_a_queue_leads_to_the_times_of_its_jobs(facts, as_):
    case = Case(50, "job", 1000)
    steps = case.add([[1, 1000, CREATE, "New", "", ""], [2, 2000, "done.invoke.a", "Active", "", ""]], 1,
                     {1: VersionFacts(work={"done.invoke.a": ("mail", "send")})})  # fmt: skip
    facts.append("activation", facts.manifest("activation"), steps, [case.row()])
    assert re.findall(r'<a href="([^"]*)">mail</a>', read(as_("viewer"), "?show=people&each=queue")) == [
        "/queues/activation/mail/"
    ]


def test_jobs_have_times_where_these_are_known(facts, as_):
    add_jobs(facts, "activation")
    client = as_("viewer")
    page = read(client, "?show=people&each=worker").partition('aria-label="Answer"')[2]
    assert re.findall(r'<th scope="row">\s*(\w+)</th>', page) == ["unknown", "w1", "w2", "w1", "w2"]
    assert "show=instances&each=worker&name=w2" in page.replace("&amp;", "&")
    for each in ("queue", "handler", "attempt"):
        assert "Running p50" in read(client, f"?show=people&each={each}")
    assert "Running p50" not in read(client, "?show=people&each=kind")


def test_each_figure_leads_to_as_many_instances(facts, as_):
    client = as_("viewer")
    asked = ["", "?show=people&each=kind", "?show=funnel&stage1=Waiting&stage2=Active&within=2h"]
    page = "".join(read(client, query) for query in asked)
    rows = re.findall(r'<td class="num"><a href="([^"]*show=instances[^"]*)">([\d,]+)</a>', page)
    assert len(rows) > 12
    for address, count in rows:
        listed = client.get(address).content.decode()
        assert f"<b>{count}</b> instance" in listed, address
    assert "gone~2F1" in read(client, "?show=instances&at=Removed")


@for_each("query", [
    "?show=times", "?show=bottlenecks", "?show=funnel&stage1=Waiting&stage2=Active&within=2h", "?show=people&each=kind",
    "?show=levels&limit=30s", "?show=compare&second-version=1", "?show=conformance", "?show=instances",
])  # fmt: skip
def test_each_question_has_an_answer(viewer, query):
    page = read(viewer, query)
    assert (
        "<table" in page.partition('aria-label="Questions"')[2]
        or "activation/instances/" in page
        or "took no step" in page
    )


@for_each("query", ["?version=x", "?since=soon", "?show=funnel&within=long", "?state=A%00", "?show=levels&limit=0"])
def test_a_filter_that_makes_no_sense_is_marked(viewer, query):
    assert 'class="error"' in read(viewer, query, 400)


@for_each("query", ["?show=instances&path=x", "?show=instances&path=[1]", "?show=instances&stages=1"])
def test_a_path_that_is_none_is_not_there(viewer, query):
    read(viewer, query, 404)


def test_rows_that_are_left_out_are_counted(viewer, monkeypatch):
    monkeypatch.setattr(questions, "MOST_ROWS", 2)
    assert re.search(r"\d+\s+rows of rarer states and transitions are not shown", read(viewer))


def test_nothing_found_is_said(facts, as_):
    assert "No results." in read(as_("viewer"), "?version=77")


def test_reading_that_is_an_hour_behind_is_said(viewer, facts):
    assert "Later steps are missing" in read(viewer)
    marks = {"0": int(time.time() * 1000) - 1_800_000}
    facts.append("activation", facts.manifest("activation"), [], [], marks=marks)
    assert "Later steps are missing" not in read(viewer)


def test_names_of_people_take_the_right_to_see_the_audit(facts, as_):
    viewer = as_("viewer")
    assert "alice" not in read(viewer, "?show=people")
    read(viewer, "?show=people&each=actor", 403)
    read(viewer, "?show=instances&each=actor&name=alice", 403)
    read(viewer, "?actor=alice", 403)
    assert "alice" in read(as_("supervisor"), "?show=people&each=actor")


def test_a_store_that_is_damaged_is_said_and_the_page_stays(facts, as_):
    (facts.folder("activation") / "manifest.json").write_text("{", encoding="utf-8")
    page = read(as_("viewer"))
    assert "SB691" in page
    assert str(facts.folder("")) not in page


@for_each("query", ["?show=instances&path=[%22%5Cud800%22]", "?version=99999999999", "?show=instances&at=%ED%A0%80"])
def test_what_no_fact_can_be_is_no_damage(viewer, query):
    answer = viewer.get(PAGE + query)
    assert answer.status_code in (200, 400)
    assert "SB691" not in answer.content.decode()


def test_a_sensitive_field_chooses_no_instances_for_anybody(engine, facts, as_):
    fields = {"email": {"type": "string", "sensitive": True}, "region": {"type": "string"}}
    context = {"type": "object", "properties": fields}
    definition = {
        "id": "order",
        "initial": "New",
        "index": ["email", "region"],
        "context": context,
        "states": {"New": {}},
    }
    engine.publish(definition)
    page = as_("supervisor").get("/machines/order/insight/").content.decode()
    assert ('<option value="region"' in page, '<option value="email"' in page) == (True, False)


def test_all_steps_are_a_file_for_who_may_see_names(facts, as_, tmp_path):
    assert as_("viewer").get("/machines/activation/insight.parquet").status_code == 403
    answer = as_("supervisor").get("/machines/activation/insight.parquet")
    (tmp_path / "steps.parquet").write_bytes(b"".join(answer.streaming_content))
    rows = duckdb.sql(f"SELECT instance, actor FROM '{tmp_path}/steps.parquet' WHERE event = 'entitle'").fetchall()
    assert len(rows) == 10 * 2 + 2 + 1
    assert ("gone/1", "alice") in rows
    assert AuditEntry.objects.get(action="export", outcome="done").facts["count"] == 34


def test_the_steps_of_a_search_are_an_event_log_without_names(facts, as_):
    viewer = as_("viewer")
    log = b"".join(viewer.get("/machines/activation/insight.xes?state=Suspended").streaming_content).decode()
    assert re.findall(r'<trace><string key="concept:name" value="([^"]+)"', log) == ["s-0", "s-1"]
    assert "alice" not in log
    assert viewer.get("/machines/activation/insight.xes?version=x").status_code == 404
    assert AuditEntry.objects.get(action="export").facts["filter"] == {"state": "Suspended"}
