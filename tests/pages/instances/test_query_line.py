"""The query line: the same filter as the form, read and written; mistakes with their position; completion."""

from __future__ import annotations

import pytest

from machines.engine import BadInput
from machines.instances.query_line import read_line, write_line
from tests.cases import for_each

from .test_instance_list import MACHINE, NOW, PARCEL, pages, parcels  # noqa: F401 - fixture


@for_each(
    "line, texts",
    [
        ("", {}),
        ("state:Waiting age>1h data.amount>100", {"state": "Waiting", "older": "1h", "data": "amount>100"}),
        ('state="In Bill"  id:p0*', {"state": "In Bill", "id": "p0*"}),
        ("data.a>=1 data.a<5 data.to:Rome", {"data": "a>=1 a<5 to:Rome"}),
        (r'data.to:"a \"b\" \\c"', {"data": r'to:"a \"b\" \\c"'}),
        ("created>2026-01-01 created<2026-02-01", {"created": ">2026-01-01 <2026-02-01"}),
        (r'Acme "two words" state:A "a:b"', {"text": r'Acme "two words" "a:b"', "state": "A"}),
        ("created:24h suspended:yes version=2", {"created": "24h", "suspended": "yes", "version": "2"}),
    ],
)
def test_a_line_is_terms_of_the_address_and_back(line, texts):
    assert read_line(line) == texts
    assert read_line(write_line(texts)) == texts


@for_each(
    "line, position, advice",
    [
        ('Acme"', 1, "quotes do not close"),
        ("state:", 7, "value is missing"),
        ('state:"Wait', 7, "quotes do not close"),
        ("state:A colour:red", 9, "use state, age"),
        ("age<1h", 4, "write age>1h"),
        ("state:A state:B", 9, "stands twice"),
        ("state!=A", 6, "takes : ="),
        (">5", 1, "begins no term"),
        ('state:""', 1, "empty value"),
    ],
)
def test_a_mistake_says_where_it_is_and_what_would_be_right(line, position, advice):
    with pytest.raises(BadInput) as raised:
        read_line(line)
    assert f"position {position}:" in str(raised.value)
    assert advice in str(raised.value)


def test_the_line_leads_to_the_address_of_the_same_filter(as_, parcels):  # noqa: F811
    client = as_("viewer")
    answer = client.get(MACHINE, {"query": "state:Here data.to:Rome data.weight>100", "order": "newest", "cursor": "x"})
    assert answer.status_code == 302
    assert answer["Location"] == (f"{MACHINE}?order=newest&state=Here&data=to%3ARome+weight%3E100#instances")
    page = client.get(answer["Location"])
    assert 'value="state:Here data.to:Rome data.weight&gt;100"' in page.content.decode()
    assert 'value="to:Rome weight&gt;100"' in page.content.decode()


def test_a_line_with_a_mistake_is_kept_and_nothing_is_listed(as_, parcels):  # noqa: F811
    answer = as_("viewer").get(MACHINE, {"query": "state:Here colour:red"})
    assert answer.status_code == 400
    assert 'value="state:Here colour:red"' in answer.content.decode()
    assert "query line, position 12" in answer.content.decode()


def test_plain_words_are_found_anywhere_and_counted(as_, parcels, engine):  # noqa: F811
    client = as_("viewer")
    assert client.get(MACHINE, {"query": "rome state:Here"})["Location"] == f"{MACHINE}?text=rome&state=Here#instances"
    assert pages(client, "text=rome&state=Here") == pages(client, "data=to%3ARome&state=Here") != []
    found = client.get(MACHINE, {"text": "p12", "data": "to:Rome"})
    assert found.context["page"].table.found == 5
    assert pages(client, "text=R%C3%B6m") == []


def test_words_that_cannot_be_searched_are_refused(as_, parcels):  # noqa: F811
    client = as_("viewer")
    for word, says in [("x" * 300, "1 to 200 characters, not 300"), ("w " * 9, "1 to 8 words"), ('a "b', "not close")]:
        answer = client.get(MACHINE, {"text": word})
        assert (answer.status_code, says in answer.content.decode()) == (400, True)


def test_several_conditions_on_data_are_joined(as_, parcels):  # noqa: F811
    client = as_("viewer")
    found = pages(client, "data=to%3ARome+weight%3E100+weight%3C%3D110")
    assert sorted(found) == ["p102", "p104", "p106", "p108", "p110"]
    assert sorted(pages(client, "by=to&is=Rome&data=weight%3C4")) == ["p000", "p002"]
    assert client.get(MACHINE, {"data": "colour:red"}).status_code == 400
    assert client.get(MACHINE, {"data": "weight>heavy"}).status_code == 400
    assert client.get(MACHINE, {"data": "weight>5 weight>7"}).status_code == 400


def test_instances_are_found_by_suspension_and_creation(as_, parcels, engine):  # noqa: F811
    client = as_("viewer")
    engine.suspend("parcel", "p001", actor="anna", reason="inquiry")
    assert pages(client, "suspended=yes") == ["p001"]
    assert len(pages(client, "suspended=no")) == 129
    assert pages(client, "suspended=yes&state=Away") == []
    assert len(pages(client, "created=2023-11-14..2023-11-15")) == 130
    assert pages(client, "created=24h") == []
    assert client.get(MACHINE, {"created": "soon"}).status_code == 400
    found = engine.find("parcel", created={"ge": NOW + 10, "lt": NOW + 12}, state="Here")
    assert [one.id for one in found] == ["p010", "p011"]
    assert engine.tally("parcel", created={"gt": NOW + 127}).total == 2


def test_completion_suggests_keys_states_and_fields(as_, parcels):  # noqa: F811
    client = as_("viewer")

    def words(word: str) -> list[str]:
        return client.get(f"{MACHINE}completion.json", {"word": word}).json()["words"]

    assert "state:" in words("st")
    assert words("state:Ro") == ["state:Road"]
    assert words("data.w") == ["data.weight:", "data.weight>", "data.weight<"]
    assert words("suspended:") == ["suspended:yes", "suspended:no"]
    assert words("ro") == ["state:Road"]
    assert words("ope") == ["tag:open"]
    assert words("weig") == ["data.weight:", "data.weight>", "data.weight<"]


def test_completion_suggests_what_indexed_fields_hold(as_, parcels, engine):  # noqa: F811
    client = as_("viewer")

    def words(word: str) -> list[str]:
        return client.get(f"{MACHINE}completion.json", {"word": word}).json()["words"]

    engine.create("parcel", "new", {"to": "New York"})
    assert words("data.to:") == ["data.to:", "data.to:Bern", 'data.to:"New York"', "data.to:Rome"]
    assert words("data.to:Ro") == ["data.to:Rome"]
    assert words("data.to:New") == words('data.to:"New') == ['data.to:"New York"']
    assert words("data.to:Oslo") == words("data.to:\0") == []
    assert words("id:p00")[:2] == ["id:p000", "id:p001"]


def test_completion_suggests_numbers_by_their_digits_and_who_acted(as_, engine, db):
    context = {"type": "object", "properties": {"to": {"type": "string"}, "weight": {"type": "number"}}}
    engine.publish(PARCEL | {"context": context, "index": ["weight", "instance.actor"]})
    for number, weight in enumerate([-3, 0, 1.5, 12, 15, 20, 104, 1500]):
        engine.create("parcel", f"p{number}", {"weight": weight}, actor=("anna", "bert", "Anna Lee")[number % 3])
    client = as_("viewer")

    def words(word: str) -> list[str]:
        return client.get(f"{MACHINE}completion.json", {"word": word}).json()["words"]

    assert words("data.weight:1") == [f"data.weight:{number}" for number in ("1.5", "12", "15", "104", "1500")]
    assert words("data.weight:1.") == ["data.weight:1.5"]
    assert words("data.weight:15") == ["data.weight:15", "data.weight:1500"]
    assert words("data.weight:")[1:4] == ["data.weight:-3", "data.weight:0", "data.weight:1.5"]
    assert words("data.weight:x") == words("data.weight:9" + "9" * 20) == []
    assert words("actor:") == ['actor:"Anna Lee"', "actor:anna", "actor:bert"]
    assert words("actor:an") == ["actor:anna"]
    for word in words("data.weight:1") + words("actor:"):
        assert client.get(MACHINE, {"query": word}).status_code == 302


def test_completion_names_no_hidden_field(as_, engine, db):
    hidden = {"weight": {"type": "integer", "sensitive": True}, "to": {"type": "string"}}
    engine.publish(PARCEL | {"context": {"type": "object", "properties": hidden}, "index": ["to"]})
    words = as_("viewer").get(f"{MACHINE}completion.json", {"word": "data."}).json()["words"]
    assert words == ["data.to:"]


def test_completion_tells_no_copy_of_a_hidden_value(as_, engine, db):
    hidden = {"iban": {"type": "string", "sensitive": True}, "to": {"type": "string"}}
    engine.publish(PARCEL | {"context": {"type": "object", "properties": hidden}, "index": ["to", "iban"]})
    engine.create("parcel", "open", {"iban": "DE44123", "to": "Bern"})
    engine.create("parcel", "copy", {"iban": "DE44123", "to": "DE44123"})
    for role in ("viewer", "supervisor"):
        client = as_(role)
        for word in ("data.to:", "data.to:D", "data.iban:", "data.iban:D"):
            assert "DE44123" not in client.get(f"{MACHINE}completion.json", {"word": word}).content.decode()
    assert as_("viewer", "vi").get(f"{MACHINE}completion.json", {"word": "data.to:B"}).json()["words"] == [
        "data.to:Bern"
    ]
