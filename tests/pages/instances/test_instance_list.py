"""The list of a machine under all its terms: figures that are the list, pages that stay put, views that are kept."""

from __future__ import annotations

import re

import pytest

from dashboard.models import MOST, SavedView
from dashboard.shared.search import instance_filter
from machines.engine import Fire
from tests.pages.catalog.test_machines import listed
from tests.pages.reading import Element, fields, read

MACHINE = "/machines/parcel/"
NOW = 1_700_000_000_000
PARCEL = {
    "id": "parcel",
    "initial": "Here",
    "context": {"to": "", "weight": 0},
    "index": ["to", "instance.id", "instance.actor", "instance.version"],
    "states": {
        "Here": {"tags": ["open"], "on": {"send": "Away"}},
        "Away": {
            "type": "parallel",
            "states": {
                "Way": {"initial": "Road", "states": {"Road": {"tags": ["open"], "on": {"fly": "Air"}}, "Air": {}}},
                "Bill": {"initial": "Due", "states": {"Due": {"on": {"pay": "Paid"}}, "Paid": {}}},
            },
            "on": {"arrive": "There"},
        },
        "There": {"type": "final"},
    },
}


@pytest.fixture
def parcels(engine, db) -> None:
    """130, of two versions: a third under way, some of those paid, some flown; the last ten have arrived."""
    engine.publish(PARCEL)
    for number in range(130):
        if number == 65:
            engine.publish(PARCEL | {"description": "second"})
        data = {"to": ("Rome", "Bern")[number % 2], "weight": number}
        engine.create("parcel", f"p{number:03}", data, actor="anna", now=NOW + number)
    sent = [Fire("parcel", f"p{n:03}", "send", actor="bert", now=NOW + 1_000 + n) for n in range(0, 130, 3)]
    paid = [Fire("parcel", f"p{n:03}", "pay", actor="carl", now=NOW + 2_000 + n) for n in range(0, 130, 6)]
    flown = [Fire("parcel", f"p{n:03}", "fly", now=NOW + 3_000 + n) for n in range(0, 130, 9)]
    there = [Fire("parcel", f"p{n:03}", "arrive", actor="bert", now=NOW + 4_000 + n) for n in range(102, 130, 3)]
    assert all(not isinstance(one, Exception) for one in engine.fire_many(sent + paid + flown + there))


def pages(client, query: str) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    address = f"{MACHINE}?{query}"
    for _ in range(20):
        page = read(client.get(address))
        found += listed(page) if page.all("table", class_="instances") else []
        following = page.all("a", rel="next")
        if not following:
            return found
        address = following[0]["href"]
    raise AssertionError("the pages never end")


def figures(page: Element) -> dict[str, dict[str, int]]:
    """State -> its figure, in the tabs, in the table of states, and on the diagram."""
    tabs = {
        tab["data-state"]: tab.one("b").text
        for tab in page.one("nav", class_="tabs", data_region="tabs").all("a")
        if "data-state" in tab.attributes
    }
    table = {
        row["data-state"]: row.one("td", class_="num", data_count="").text
        for row in page.one("table", data_region="states").all("tr")
    }
    drawn = {}
    for state in page.all("a", class_="state"):
        if "data-state" in state.attributes:
            drawn[state["data-state"]] = state.all("tspan", class_="count") + state.all("text", class_="count")
    drawing = {name: texts[0].text for name, texts in drawn.items() if texts}
    return {
        where: {name: int(text.replace(",", "") or 0) for name, text in found.items()}
        for where, found in (("tabs", tabs), ("table", table), ("diagram", drawing))
    }


@pytest.mark.parametrize(
    "query",
    [
        "",
        "tag=open",
        "actor=b*&version=1",
        "by=to&is=Rome",
        "by=to&is=Rome&version=1&actor=carl&id=p0&tag=open",
        "older=1s&actor=anna",
        "error=any",
    ],
)
def test_each_figure_is_what_the_list_of_its_state_holds(as_, parcels, query):
    client = as_("viewer")
    page = read(client.get(f"{MACHINE}?{query}"))
    found = figures(page)
    assert set(found["table"]) >= {"Here", "Away", "Road", "Air", "Due", "Paid", "There"}
    for state, number in found["table"].items():
        assert len(pages(client, f"{query}&state={state}")) == number, state
    assert found["tabs"] == {state: found["table"][state] for state in ("Here", "Away", "There")}
    assert found["diagram"], "the drawing tells figures"
    assert all(found["table"][state] == number for state, number in found["diagram"].items())
    total = int(page.one("nav", class_="tabs", data_region="tabs").one("b", data_total="").text)
    assert total == len(pages(client, query))


def test_a_field_without_an_index_is_found_in_a_state_that_is_named(as_, parcels):
    client, query = as_("viewer"), "state=Here&data=weight%3D5"
    page = read(client.get(f"{MACHINE}?{query}"))
    assert listed(page) == ["p005"]
    assert page.one("nav", class_="tabs", data_region="tabs").one("b", data_total="").text == "1+"
    row = page.one("table", data_region="states").one("tr", data_state="Here")
    assert row.one("td", data_count="").text == "1+"


def test_past_its_bound_a_figure_says_at_least(as_, parcels, monkeypatch):
    monkeypatch.setattr("dashboard.instances.instance_list.MAX_COUNTED", 20)
    page = read(as_("viewer").get(f"{MACHINE}?by=to&is=Rome&tag=open"))
    texts = [b.text for b in page.one("nav", class_="tabs", data_region="tabs").all("b")]
    assert texts
    assert all(re.fullmatch(r"\d+\+", text) for text in texts), texts


def test_a_line_leads_to_the_instances_that_came_by_it(as_, engine, db):
    engine.publish({**PARCEL, "index": ["instance.transition"]})
    for id in ("sent", "flown", "here"):
        engine.create("parcel", id)
    engine.fire("parcel", "sent", "send")
    engine.fire("parcel", "flown", "send")
    engine.fire("parcel", "flown", "fly")
    client = as_("viewer")
    page = read(client.get(MACHINE))
    links = {line["data-events"]: line["href"] for line in page.all("a", class_="transition")}
    assert (links["send"], links["fly"]) == (
        "/machines/parcel/?state=Away&edge=1%3At1&order=newest#instances",
        "/machines/parcel/?state=Air&edge=1%3At3&order=newest#instances",
    )
    found = {
        event: listed(read(client.get(link.partition("#")[0])))
        for event, link in links.items()
        if event in ("send", "fly")
    }
    assert {event: sorted(ids) for event, ids in found.items()} == {"send": ["flown", "sent"], "fly": ["flown"]}
    assert "SB418" in client.get(f"{MACHINE}?edge=t1").content.decode()
    refused = client.get(f"{MACHINE}?edge=9:t1").content.decode()
    assert "No results" in refused or "SB4" in refused


def test_every_term_is_a_chip_that_takes_it_off(as_, parcels):
    client = as_("viewer")
    query = "state=Here&older=1s&version=1&tag=open&actor=anna&id=p0&by=to&is=Rome"
    page = read(client.get(f"{MACHINE}?{query}"))
    chips = page.one("ul", class_="chips", aria_label="Filters").all("a")
    assert [chip.text for chip in chips] == [
        "state Here ×", "older 1s ×", "version 1 ×", "tag open ×", "actor anna ×", "id p0 ×", "to Rome ×",
    ]  # fmt: skip
    for chip, term in zip(chips, query.split("&")[:6], strict=False):
        assert term not in chip["href"]
        assert set(chip["href"].partition("?")[2].partition("#")[0].split("&")) == set(query.split("&")) - {term}
    assert "is=" not in chips[-1]["href"]
    sent = fields(page.one("form", class_="filter-form"))
    assert {name: text for name, text in sent.items() if text} == dict(term.split("=") for term in query.split("&"))


@pytest.mark.parametrize(
    ("query", "field", "word"),
    [
        ("older=soon", "older", "not a duration"),
        ("version=two", "version", "not a version"),
        ("version=0", "version", "not a version"),
        ("by=to&is=" + "x" * 201, "is", "at most 200"),
        ("by=weight&is=3", "", "not found by"),
        ("tag=nope", "", "no state with the tag"),
        ("cursor=xyz", "", "SB405"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(as_, parcels, query, field, word):
    answer = as_("viewer").get(f"{MACHINE}?{query}")
    page = read(answer)
    assert answer.status_code == 400
    said = page.one(id=f"find-{field}-error").text if field else page.text
    assert word in said
    if field:
        assert page.one("input", name=field)["aria-invalid"] == "true"


def test_a_place_in_the_list_that_is_not_known_leads_to_its_beginning(as_, parcels):
    page = read(as_("viewer").get(f"{MACHINE}?state=Here&cursor=xyz"))
    said = page.one("p", role="alert")
    assert "SB405 This page of the list has expired." in said.text
    assert said.one("a")["href"] == f"{MACHINE}?state=Here#instances"


def test_how_long_somebody_is_in_a_state_is_not_said_while_a_search_narrows_the_figures(as_, parcels):
    client = as_("viewer")
    for query, said in (("", True), ("?version=1", False)):
        states = read(client.get(f"{MACHINE}{query}")).one("section", aria_labelledby="states-title")
        assert ("oldest" in states.text, bool(states.all("td", data_oldest=""))) == (said, said)


def test_pages_lead_back_while_instances_move(as_, parcels, engine):
    client = as_("viewer")
    first = read(client.get(f"{MACHINE}?state=Here"))
    second = read(client.get(first.one("a", rel="next")["href"]))
    assert listed(first) + listed(second) == pages(client, "state=Here")
    engine.fire("parcel", listed(first)[3], "send")
    back = read(client.get(second.one("a", rel="prev")["href"]))
    assert listed(back) == [id for id in listed(first) if id != listed(first)[3]]
    assert listed(read(client.get(back.one("a", rel="next")["href"]))) == listed(second)
    assert not first.all("a", rel="prev")


@pytest.mark.parametrize("query", ["", "state=There", "by=to&is=Rome&state=There", "by=to&is=Nowhere"])
def test_what_is_read_anew_has_all_figures_of_the_page_and_no_list_form_or_chart(as_, parcels, query):
    client = as_("supervisor")
    whole, part = (read(client.get(f"{MACHINE}?{query}{more}")) for more in ("", "&figures="))
    assert figures(part) == figures(whole)
    for region in ("versions", "modes", "tabs", "states"):
        assert part.one(data_region=region).text == whole.one(data_region=region).text
    found = {place.text for place in whole.all("span", data_found="")} or {"0"}
    assert {place.text for place in part.all("span", data_found="")} == found
    main = part.one("main")
    assert not main.all("form", method="post") + main.all("table", class_="instances") + main.all("figure")
    assert "figures=" not in "".join(link["href"] for link in main.all("a"))


def test_rows_say_what_became_of_them_and_how_many_are_new(as_, parcels, engine):
    client = as_("viewer")
    before = read(client.get(f"{MACHINE}?state=There"))
    shown = listed(before)
    asked = "&".join(f"row={id}" for id in shown)
    still = read(client.get(f"{MACHINE}rows/?state=There&{asked}"))
    assert (still.one("p", data_new="").text, rows(still)) == ("", rows(before))
    engine.delete("parcel", shown[0])
    engine.fire("parcel", "p000", "arrive", now=NOW + 9_000)
    engine.force("parcel", shown[1], "Here", actor="a", reason="r")
    now = read(client.get(f"{MACHINE}rows/?state=There&{asked}"))
    assert now.one("p", data_new="").text == "1 new"
    assert shown[0] not in rows(now)
    assert rows(now)[shown[1]][0] == "Here"
    assert rows(now)[shown[2]] == rows(before)[shown[2]]


def rows(page) -> dict[str, list[str]]:
    """Instance -> its state, the text of its state and its revision."""
    return {
        row["data-row"]: [row["data-states"], row.one("td", data_cell="states").text, row["data-revision"]]
        for row in page.all("tr")
        if "data-row" in row.attributes
    }


QUERIES = (
    "",
    "state=Here",
    "state=Here&older=1s",
    "by=to&is=Nowhere",
    "id=p00",
    "version=1&by=to&is=Rome",
    "actor=anna",
)


def test_a_page_asks_redis_no_more_of_many_instances_than_of_some(as_, parcels, engine, monkeypatch):
    monkeypatch.setattr("dashboard.instances.instance_list.MAX_COUNTED", 50)
    client = as_("viewer")
    some = {query: asked(engine, client, query) for query in QUERIES}
    held = engine.client.hgetall(engine.keys.partition("parcel").instance("p001"))
    add(engine, held, 900)
    for query in QUERIES:
        many = asked(engine, client, query)
        assert not {"scan", "keys", "sscan", "hscan", "zscan"} & set(many), query
        # Where a page compares, each instance that it looks at is one HMGET: as many as it lists, and the 50 counted
        # if the machine was too slow to remember their number.
        assert sum(many.values()) <= sum(some[query].values()) + 50 + 20, (query, some[query], many)


def asked(engine, client, query: str) -> dict[str, int]:
    """Command -> how often a page has it carried out, those of functions included."""
    client.get(f"{MACHINE}?{query}")
    before = engine.client.info("commandstats")
    assert client.get(f"{MACHINE}?{query}").status_code == 200
    after = engine.client.info("commandstats")
    calls = {name: stats["calls"] - before.get(name, {"calls": 0})["calls"] for name, stats in after.items()}
    return {name.removeprefix("cmdstat_"): count for name, count in calls.items() if count and name != "cmdstat_info"}


def add(engine, held: dict[str, str], count: int) -> None:
    """As many more like one that waits, all of them where its indexes lead."""
    partition, pipeline = engine.keys.partition("parcel"), engine.client.pipeline(transaction=False)
    marks = {"to": "sBern", "instance.actor": "sanna", "instance.version": "nbff0000000000000"}
    for number in range(count):
        id = f"q{number:04}"
        pipeline.hset(partition.instance(id), mapping=held)
        pipeline.zadd(partition.state("Here"), {id: NOW + number})
        pipeline.zadd(partition.lookup("instance.id"), {f"s{id}\0{id}": 0})
        for field, mark in marks.items():
            pipeline.zadd(partition.lookup(field), {f"{mark}\0{id}": 0})
    pipeline.hincrby(partition.meta, "instances", count)
    pipeline.execute()


# Views that are kept


def keep(client, name="mine", query="state=Here&actor=anna&cursor=abc", page=MACHINE, **more):
    return client.post("/views/", {"name": name, "page": page, "query": query} | more)


def test_a_view_is_kept_listed_renamed_and_deleted(as_, parcels):
    client = as_("viewer")
    answer = keep(client)
    assert (answer.status_code, answer.url) == (302, f"{MACHINE}?state=Here&actor=anna")
    chips = read(client.get(MACHINE)).one("ul", aria_label="Saved views").all("a")
    assert [(chip.text, chip["href"]) for chip in chips] == [("mine", f"{MACHINE}?state=Here&actor=anna#instances")]
    id = SavedView.objects.get().pk
    assert client.post(f"/views/{id}/rename/", {"name": "ours", "shared": "on"}).status_code == 302
    assert "ours shared" in read(client.get(MACHINE)).text
    other = as_("operator")
    assert "ours the-viewer" in read(other.get(MACHINE)).text
    assert other.post(f"/views/{id}/delete/").status_code == 404
    assert client.post(f"/views/{id}/delete/").status_code == 302
    assert not SavedView.objects.exists()


def test_what_is_not_shared_is_nobody_elses(as_, parcels):
    keep(as_("viewer"), name="secret plan")
    assert "secret plan" not in read(as_("operator").get(MACHINE)).text


@pytest.mark.parametrize(
    "page",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/admin/",
        "/views/7/delete/",
        "/machines/parcel/create/",
        "",
        "/\\x",
    ],
)
def test_only_a_page_of_this_site_that_shows_is_kept(as_, parcels, page):
    answer = keep(as_("viewer"), page=page)
    assert (answer.status_code, SavedView.objects.count()) == (400, 0)


def test_a_name_is_a_persons_own_once_and_views_are_bounded(as_, parcels, user_of):
    client = as_("viewer")
    assert keep(client).status_code == 302
    assert "already exists" in read(keep(client)).text
    assert keep(client, name="").status_code == 400
    assert keep(as_("operator")).status_code == 302
    owner = SavedView.objects.first().owner
    SavedView.objects.bulk_create(SavedView(owner=owner, name=f"v{n}", page=MACHINE) for n in range(MOST - 1))
    assert f"{MOST} views" in read(keep(client, name="one too many")).text


def test_what_a_bulk_was_found_by_is_said_in_words():
    terms = {"state": None, "older_than": 900.0, "version": 2, "actor": {"prefix": "al"}, "id_prefix": "ATV-"}
    assert instance_filter.describe_filter(terms | {"where": {"serial": "x", "amount": {"ge": 5, "le": 10}}}) == [
        ("min time in state", "15 min"),
        ("version", "2"),
        ("last actor", "al*"),
        ("id prefix", "ATV-"),
        ("serial", "x"),
        ("amount", "≥ 5 ≤ 10"),
    ]
