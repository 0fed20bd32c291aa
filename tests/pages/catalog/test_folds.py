"""Single states folded and unfolded: by links that work without a script, with exact counts, within bounds."""

from __future__ import annotations

import itertools
import json

from dashboard.shared import version_view
from machines.catalog import offload
from tests.diagrams.samples import flat_definition
from tests.pages.reading import Element, read

from .test_diagram_modes import badges, crowd, drawing, links, listed

__all__ = ["crowd"]

MACHINE = "/machines/delivery/"
INNER = ("Parcel", "Invoice", "Customer")


def states(page: Element) -> set[str]:
    return set(badges(page))


def grip(page: Element, state: str) -> str:
    return drawing(page).one("a", data_fold=state)["href"]


def test_each_state_around_others_folds_and_unfolds_by_a_link(as_, delivery):
    client = as_("viewer")
    whole = read(client.get(f"{MACHINE}?mode=age&state=Paying"))
    assert grip(whole, "Parcel") == f"{MACHINE}?fold=Parcel&mode=age&state=Paying#fold-3"
    folded = read(client.get(grip(whole, "Parcel").partition("#")[0]))
    assert states(whole) - states(folded) == {"Picking", "Missing", "Packed", "On its way", "Late", "At the door"}
    assert {"Parcel", "Invoice", "Open"} <= states(folded)
    assert grip(folded, "Parcel") == f"{MACHINE}?mode=age&state=Paying#fold-3"
    assert "fold=Parcel%2CInvoice" in grip(folded, "Invoice")
    assert "fold=Parcel" in folded.one("div", data_region="listing")["data-first"]
    assert "fold=Parcel" in folded.one("a", download="delivery-1.svg")["href"]


def test_the_number_in_a_folded_state_is_that_of_its_list(as_, crowd):
    client = as_("viewer")
    for folds in (INNER[:1], INNER[:2], INNER[1:]):
        page = read(client.get(f"{MACHINE}?fold={','.join(folds)}"))
        found = {state: listed(client, href.partition("#")[0]) for state, href in links(page).items()}
        assert {state: str(len(ids)) for state, ids in found.items()} == badges(page), folds
        assert all(len(set(ids)) == len(ids) for ids in found.values()), folds


def test_an_instance_is_lit_in_what_it_is_folded_into(as_, order):
    page = read(as_("viewer").get(f"{MACHINE}instances/R-1/?fold=Parcel"))
    lit = {part["data-state"] for part in drawing(page).all(class_="current")}
    assert {"Fulfilling", "Parcel", "Invoice", "Open"} <= lit
    assert drawing(page).one(class_="current", data_state="Parcel").has("class", "folded")
    assert grip(page, "Parcel") == f"{MACHINE}instances/R-1/#fold-3"


def test_all_of_the_top_level_folded_is_the_top_level_and_what_is_within_is_no_matter(as_, delivery):
    view = version_view.load_version("delivery", 1, fold="Parcel,Fulfilling,Nobody,,Paying")
    assert (view.terms, view.folds) == ({"view": "top"}, {"Fulfilling"})
    assert view.fingerprint == version_view.load_version("delivery", 1, fold=version_view.TOP).fingerprint
    assert view.toggle_fold("Fulfilling") == {}


def test_a_name_with_a_comma_is_called_by_its_number(engine, db):
    inner = {"initial": "a", "states": {"a": {}}}
    engine.publish({"id": "m", "initial": "x,y", "states": {"x,y": inner, "z": {"initial": "b", "states": {"b": {}}}}})
    view = version_view.load_version("m", 1, fold="z")
    assert view.toggle_fold("x,y") == {"view": "top"}
    assert version_view.load_version("m", 1, fold="1").folds == {"x,y"}


def test_whatever_is_asked_for_few_drawings_are_kept_and_few_words_are_read(as_, delivery, monkeypatch):
    drawn = []
    real = offload.run
    monkeypatch.setattr(offload, "run", lambda *words, **named: drawn.append(named["folds"]) or real(*words, **named))
    version_view._make_entry.cache_clear()
    client = as_("viewer")
    for junk in ("," * 5000, "Parcel," * 900, ",".join(f"s{n}" for n in range(900))):
        assert client.get(MACHINE, {"fold": junk}).status_code == 200
    for order in itertools.permutations(INNER):
        version_view.load_version("delivery", 1, fold=",".join(order))
    assert len(drawn) == 2, "Parcel alone, and all three, however they are called"
    assert version_view._make_entry.cache_info().maxsize == version_view.MAX_CACHED_DRAWINGS


def test_what_is_late_in_a_folded_state_is_marked_on_it_and_leads_to_the_drawing_that_shows_it(as_, engine, db):
    inner = {"in": {"sla": "15m"}}
    engine.publish({"id": "m", "initial": "A", "states": {"A": {"initial": "in", "states": inner}}})
    engine.create("m", "old", now=1_000_000)
    client = as_("viewer")
    mark = drawing(read(client.get("/machines/m/?fold=A"))).one("a", class_="late")
    assert (mark.text, mark["aria-label"]) == ("▲", "in A (collapsed): some over service level")
    mark = drawing(read(client.get(mark["href"]))).one("a", class_="late", data_of="in")
    assert listed(client, mark["href"].partition("#")[0]) == ["old"]


def test_the_coloured_drawing_can_be_had_as_a_file(as_, crowd):
    client = as_("viewer")
    bare, coloured = (client.get(f"{MACHINE}diagram.svg?version=1&fold=Parcel{more}") for more in ("", "&mode=age"))
    assert bare["Cache-Control"] != coloured["Cache-Control"] == "private, no-store"
    assert "heat-" in coloured.content.decode().partition("</style>")[2]
    assert "heat-" not in bare.content.decode().partition("</style>")[2]
    assert b"<a " not in coloured.content


def test_a_large_flat_machine_offers_groups_that_open_one_by_one(as_, engine, db):
    engine.publish(flat_definition(60))
    for number in range(3):
        engine.create("flat", f"F-{number}")
    initial = flat_definition(60)["initial"]
    group = f"{initial.split()[0].lower()} *"
    client = as_("viewer")
    whole = read(client.get("/machines/flat/"))
    assert whole.one("span", data_region="view").all("a")[0]["href"] == "/machines/flat/?view=groups"
    grouped = read(client.get("/machines/flat/?view=groups"))
    assert len(states(grouped)) == 8
    assert badges(grouped)[group] == "3"
    part = drawing(grouped).one("a", class_="state", data_state=group)
    opened = read(client.get(part["href"].partition("#")[0]))
    assert initial in states(opened)
    assert group not in {name for name in states(opened) if drawing(opened).all(class_="folded", data_state=name)}
    assert len(states(opened)) == 8 + len(json.loads(part["data-leaves"]))
    assert grip(opened, group).startswith("/machines/flat/?view=groups#")
    assert client.get("/machines/flat/?view=groups&fold=-").status_code == 200
    lit = drawing(read(client.get("/machines/flat/instances/F-0/?view=groups"))).all(class_="current")
    assert [part["data-state"] for part in lit] == [group]
    assert client.get("/machines/flat/?view=groups&mode=failures").status_code == 200
    assert client.get("/machines/flat/diagram.svg?view=groups").status_code == 200


def test_a_nested_machine_has_no_groups(as_, delivery):
    client = as_("viewer")
    assert states(read(client.get(f"{MACHINE}?view=groups"))) == states(read(client.get(MACHINE)))
