"""find by words: wherever an instance holds them, within a budget, and never in what is left out."""

import pytest

from machines.engine import BadInput
from machines.engine.search import finder
from tests.cases import for_each
from tests.engine.builders import NOW, errand, fields, machine, publish

from .indexed import every

STATES = {"Held": {"tags": ["on hold"], "on": {"go": "Free"}}, "Free": {}}
ORDER = machine("order", STATES, context=fields(customer="string", iban="string", lines="array", amount="integer"))


@pytest.fixture
def orders(many):
    publish(many, ORDER)
    for id, data in {
        "ACME-1": {},
        "o2": {"customer": "Acme Corp"},
        "o3": {"lines": [{"sku": "acme-bolt"}]},
        "o4": {"customer": "M\u00dcLLER & S\u00f6hne", "amount": 7341},
        "o5": {"customer": "\u0623\u0643\u0645\u064a", "iban": "DE4412"},
        "o6": {"customer": "pays from de4412", "iban": "DE4412", "lines": [{"iban": "x"}, "bolt"]},
        "o7": {"customer": "y" * 50_000 + "needle"},
    }.items():
        many.create("order", id, data, now=NOW)
    many.fire("order", "o4", "go", now=NOW)
    return many


@for_each(
    "text, ids",
    [
        ("acme", ["ACME-1", "o2", "o3"]),
        (["acme", "corp"], ["o2"]),
        ("Acme C", ["o2"]),
        ("m\u00fcller", ["o4"]),
        ("734", ["o4"]),
        ("\u0643\u0645", ["o5"]),
        ("needle", ["o7"]),
        (["Hold", "acme"], ["ACME-1", "o2", "o3"]),
        ("%", []),
        ("[a-z]", []),
        ("DE4412", ["o5", "o6"]),
        ({"words": ["de4"], "without": ["iban"]}, []),
        ({"words": ["pays"], "without": ["iban"]}, []),
        ({"words": ["bolt"], "without": ["iban"]}, ["o3"]),
    ],
)
def test_words_are_found_wherever_an_instance_holds_them(orders, text, ids):
    assert sorted(every(orders, "order", text=text)) == ids
    assert orders.tally("order", text=text).total == len(ids)
    assert sorted(every(orders, "order", text=text, limit=1, newest=True)) == ids
    held = [id for id in ids if id != "o4"]
    assert sorted(every(orders, "order", text=text, state="Held")) == held


def test_errors_and_the_input_of_open_jobs_are_found(engine):
    sends = errand(input={"cc": "to + '.example'"}, retry={"attempts": 1})
    publish(engine, sends | {"context": {"to": "ann@acme"}}, "i1", "i2")
    engine.fire("errand", "i1", "start", now=NOW)
    assert every(engine, "errand", text="ACME.example") == ["i1"]
    (job,) = engine.take("errand", "work", worker="w", now=NOW)
    engine.fail(job, "No route to the Bank", kind="BankUnavailable", retry=False, now=NOW)
    assert every(engine, "errand", text="to the bank") == every(engine, "errand", text="bankun")
    hidden = {"words": ["bank"], "without": ["other"]}
    assert every(engine, "errand", text=hidden) == []


@pytest.mark.parametrize("budget", [{"most": 100}, {"seconds": 0}])
def test_a_page_compares_no_more_than_its_budget_and_the_next_goes_on(orders, monkeypatch, budget):
    for number in range(300):
        orders.create("order", f"n{number}", {"customer": "Globex"}, now=NOW + 1 + number)
    orders.create("order", "last", {"customer": "Initech"}, now=NOW + 999)
    monkeypatch.setattr(finder, "ROUNDS", 0)
    monkeypatch.setattr(finder, "TEXT_LOOK", 50)  # a fast machine reads them all in one call
    page, looked = orders.find("order", text="initech", **budget), []
    while page.cursor is not None:
        looked.append(page.looked)
        page = orders.find("order", text="initech", cursor=page.cursor, **budget)
    assert [one.id for one in page] == ["last"]
    assert looked
    assert max(looked) <= 100 + finder.MAX_LIMIT


@for_each("text", ["", [], ["a"] * 9, "x" * 300, 5, ["a", 5], "a\0b", "\ud800"])
def test_what_is_no_word_is_refused(orders, text):
    with pytest.raises(BadInput):
        orders.find("order", text=text)
