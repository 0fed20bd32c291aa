"""Fields that are marked as encrypted: neither Redis nor the database holds their values in any readable form."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from copy import deepcopy

import pytest
from django.core.management import CommandError, call_command

from machines.catalog import publishing
from machines.conf.encryption.field_codec import SecretKeyCodec
from machines.connections import get_engine
from machines.engine import BadInput, BadPayload, DefinitionError, EncryptionFailed, Engine, UnknownInstance
from machines.engine.aio.async_engine import AsyncEngine
from machines.engine.connection.calls import Caller
from machines.engine.definitions import compile_definition
from machines.engine.publishing.catalog import Catalog
from machines.instances import actions as instances
from machines.instances.archive.store import get_archive
from machines.instances.bulks.bulk import Bulk
from machines.instances.bulks.order import Order
from machines.people.actor import Actor
from machines.retention.duty import RetentionDuty
from machines.schedules import actions as schedules
from machines.schedules.declarations import check_defined
from machines.schedules.schedules import Schedules
from machines.testing.job_runner import JobRunner
from machines.worker.job import Job
from tests.configuration import configure
from tests.retention.conftest import DAY, Restless, run

from .conftest import dump_redis, dump_sql

CARD, MAIL, NUMBER, REPLY = "4111-7CANARY", "ann7CANARY@example.com", 7700777007, "answer-7CANARY"
PLAIN = ("7CANARY", str(NUMBER))
CODEC = "machines.conf.encryption.field_codec.SecretKeyCodec"
PAYMENT = {
    "id": "payment",
    "initial": "New",
    "index": ["mail"],
    "context": {
        "type": "object",
        "properties": {
            "card": {"type": "string", "encrypted": True},
            "mail": {"type": "string", "encrypted": "searchable"},
            "account": {"type": "integer", "encrypted": True},
            "answer": {"type": "string", "encrypted": True},
            "note": {"type": ["object", "null"], "encrypted": True},
            "tries": {"type": "integer", "default": 0},
        },
    },
    "events": {"pay": {"payload": {"card": {"type": "string", "encrypted": True, "required": True}}}},
    "states": {
        "New": {
            "on": {
                "pay": {"target": "Charging", "actions": [{"set": {"card": "event.card"}}]},
                "sign": [
                    {"guard": "mail == None", "actions": [{"set": {"mail": "event.mail"}}]},
                    {"guard": "event.mail == mail", "target": "Known"},
                ],
            }
        },
        "Charging": {
            "invoke": {
                "src": "charge",
                "input": {"card": "card", "mail": "mail"},
                "retry": {"attempts": 2, "backoff": "10ms"},
                "onDone": {"target": "Paid", "actions": [{"set": {"answer": "event.result.answer"}}]},
            }
        },
        "Known": {},
        "Paid": {"type": "final"},
    },
}


@pytest.fixture
def coded(engine, settings, db) -> Engine:
    """The engine of the settings, with a codec."""
    configure(settings, CODEC=CODEC)
    publishing.publish(PAYMENT)
    return get_engine()


def charge(job):
    assert (job.input["card"], job.data["mail"], job.data["account"]) == (CARD, MAIL, NUMBER)
    job.progress(1, 2, f"card {CARD}")
    if job.attempt == 1:
        raise ValueError(f"the bank refused {CARD}")
    return {"answer": REPLY, "nested": [{"card": CARD}]}


def run_jobs(engine: Engine, handler=charge) -> list[str]:
    found = []
    for _ in range(3):
        found += [
            run.outcome
            for run in JobRunner(engine, {"charge": handler, "lone": print}).run(["payment"], None, 10, False)
        ]
        engine.tick("payment", now=engine.read_clock() + 60_000)
    return found


def test_nothing_that_is_stored_holds_a_value(coded, user_of, cleaner, prefix):
    actor = Actor(user_of("supervisor", "ann"), "test")
    instances.create(actor, "payment", "p-1", {"mail": MAIL, "account": NUMBER})
    coded.create_many("payment", {"p-2": {"mail": MAIL}, "p-3": None})
    instances.fire(actor, "payment", "p-1", "pay", {"card": CARD})
    coded.fire_many([("payment", "p-2", "pay", {"card": CARD})])
    instances.repair(actor, "edit", "payment", "p-2", changes={"account": NUMBER}, reason="a test")
    coded.enqueue("payment", "lone", {"card": CARD})
    lone = {"machine": "payment", "src": "lone", "input": {"card": CARD}}
    coded.batch([lone], id="b", on_end=lone)
    coded.add_to_batch("payment", "b", [lone])
    among = {"where": {"mail": MAIL}}
    Bulk.start(coded, Order("payment", "fire", "ann", "a test", filter=among, event="pay", payload={"card": CARD}))
    what = {"do": "fire", "machine": "payment", "instance": "p-3", "event": "pay", "payload": {"card": CARD}}
    schedules.put(actor, {"name": "nightly", "when": {"every": "1d"}, "what": what}, reason="a test")
    assert run_jobs(coded, charge).count("completed") >= 2
    done = coded.get("payment", "p-1")
    assert done.state == "Paid"
    assert coded.decrypt(done.data) == {
        "card": CARD, "mail": MAIL, "account": NUMBER, "answer": REPLY, "tries": 0,
    }  # fmt: skip
    stored = dump_redis(cleaner, prefix) + dump_sql()
    assert "enc:1:card:" in stored
    for text in PLAIN:
        assert text not in stored


def test_equal_values_are_found_and_compared_by_their_ciphertext(coded):
    coded.create("payment", "p-1", {"mail": MAIL, "account": 1})
    coded.create("payment", "p-2", {"mail": "bob@example.com"})
    assert [one.id for one in coded.find("payment", where={"mail": MAIL}).instances] == ["p-1"]
    assert coded.fire("payment", "p-1", "sign", {"mail": MAIL}).state == "Known"
    for rule in ({"prefix": "ann"}, {"ge": "a"}):
        with pytest.raises(BadInput, match="only by a whole value"):
            coded.find("payment", where={"mail": rule})
    with pytest.raises(BadInput, match="only where it is declared as searchable"):
        coded.find("payment", state="New", where={"account": 1})


def test_plain_text_of_a_client_without_a_codec_is_refused(coded, redis_url, prefix):
    other = Engine.from_url(redis_url, prefix=prefix)
    coded.create("payment", "p-1")
    refused = [
        lambda: other.create("payment", "p-2", {"card": CARD}),
        lambda: other.fire("payment", "p-1", "pay", {"card": CARD}),
        lambda: other.fire("payment", "p-1", "sign", {"mail": MAIL}),
        lambda: other.edit("payment", "p-1", {"account": NUMBER}, actor="ann", reason="a test"),
    ]
    for call in refused:
        with pytest.raises(BadPayload, match="ciphertext") as error:
            call()
        assert not any(text in str(error.value) for text in PLAIN)
    other.client.close()


def test_the_type_of_a_plain_value_is_checked(coded):
    with pytest.raises(BadPayload, match="'account' takes integer, not string"):
        coded.create("payment", "p-1", {"account": CARD})
    assert coded.decrypt(coded.create("payment", "p-1", {"note": {"a": [1]}, "tries": 2}).data["note"]) == {"a": [1]}
    assert coded.edit("payment", "p-1", {"note": None}, actor="ann", reason="a test").data == {"note": None, "tries": 2}


def nest(depth: int) -> list:
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    "note", [{"a": float("nan")}, {"a": b"x"}, {"a": object()}, {"a": nest(100_000)}, {1: 2, "a": 3}]
)
def test_what_is_no_json_is_refused_as_a_payload(coded, note):
    for data in ({"note": note}, {"other": [note]}):
        with pytest.raises(BadPayload):
            coded.create("payment", "p-1", data)


def test_old_keys_read_and_without_the_key_nothing_is_lost(coded, settings):
    coded.create("payment", "p-1", {"mail": MAIL, "account": NUMBER})
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, as long as a key should be: 0123456789"
    data = coded.get("payment", "p-1").data
    assert coded.decrypt(data)["account"] == NUMBER
    kept, settings.SECRET_KEY_FALLBACKS = settings.SECRET_KEY_FALLBACKS, []
    with pytest.raises(EncryptionFailed, match="cannot be decrypted: KeyGone; nothing was changed"):
        coded.decrypt(data)
    shown = coded.decrypt_for_people("payment", data)
    assert shown["account"] == "(cannot be decrypted: KeyGone)"
    with pytest.raises(BadPayload, match="leave the field out to keep it"):
        coded.edit("payment", "p-1", {"account": shown["account"]}, actor="ann", reason="a test")
    settings.SECRET_KEY_FALLBACKS = kept
    assert coded.decrypt(coded.get("payment", "p-1").data)["account"] == NUMBER


def find_by_mail(engine: Engine, mail: str = MAIL) -> list[str]:
    return [one.id for one in engine.find("payment", where={"mail": mail}).instances]


def test_the_command_makes_searchable_values_found_under_a_new_key(coded, settings, capsys, monkeypatch):
    coded.create("payment", "p-1", {"mail": MAIL, "account": NUMBER})
    coded.create("payment", "p-2")
    before = coded.encrypt("payment", {"mail": MAIL})
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key, as long as a key should be: 0123456789"
    assert find_by_mail(coded) == []
    coded.create("payment", "p-3", before)
    assert find_by_mail(coded, before["mail"]) == ["p-3"], "whoever holds the old ciphertext finds what is new"
    edit = Engine.edit

    def change_first(self, machine, id, changes, **options):
        if id == "p-1":
            edit(self, machine, id, {"tries": 1}, actor="ann", reason="a test")
        return edit(self, machine, id, changes, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "edit", change_first)
        call_command("secrets", "rotate")
    assert "searchable fields of payment: 0 encrypted, 2 up to date, 1 changed meanwhile" in capsys.readouterr().out
    call_command("secrets", "rotate")
    assert "searchable fields of payment: 1 encrypted, 2 up to date\n" in capsys.readouterr().out
    assert sorted(find_by_mail(coded)) == ["p-1", "p-3"]
    assert coded.fire("payment", "p-1", "sign", before).state == "Known"
    settings.SECRET_KEY_FALLBACKS = []
    assert coded.decrypt(coded.get("payment", "p-1").data["mail"]) == MAIL
    settings.SECRET_KEY = "a third key, which reads none of it: 0123456789"
    held = coded.get("payment", "p-1").data
    with pytest.raises(CommandError, match="searchable fields of payment of p-1"):
        call_command("secrets", "rotate")
    assert coded.get("payment", "p-1").data == held


def test_the_command_goes_on_after_a_value_that_stays(engine, settings, db, capsys, monkeypatch):
    configure(settings, CODEC=CODEC)
    properties = {"number": {"type": "integer", "encrypted": "searchable"}}
    publishing.publish({"id": "card", "initial": "New", "context": {"type": "object", "properties": properties},
                        "states": {"New": {}}})  # fmt: skip
    coded, kept = get_engine(), settings.SECRET_KEY
    settings.SECRET_KEY = "a key that is lost: 0123456789 0123456789 0123456789"
    coded.create("card", "c-1", {"number": NUMBER})
    settings.SECRET_KEY = kept
    coded.create("card", "c-2", {"number": NUMBER})
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [kept], "the next key: 0123456789 0123456789 0123456789"
    coded.create("card", "c-3", {"number": NUMBER})

    def refuse(self, machine, id, changes, **options):
        raise BadPayload(f"{id} would be too large")

    monkeypatch.setattr(Engine, "edit", refuse)
    with pytest.raises(CommandError, match="2 values stay as they are:") as caught:
        call_command("secrets", "rotate")
    first, second = sorted(str(caught.value).splitlines()[1:])
    assert first.startswith("searchable fields of card of c-1: ")
    assert "cannot be decrypted: KeyGone" in first
    assert second == "searchable fields of card of c-2: c-2 would be too large"
    assert "searchable fields of card: 0 encrypted, 1 up to date" in capsys.readouterr().out


def test_a_ciphertext_is_not_read_as_that_of_another_field(coded):
    text = coded.encrypt("payment", {"card": CARD})["card"].replace(":card:", ":answer:")
    with pytest.raises(EncryptionFailed):
        coded.decrypt(text)


class Away:
    def decrypt(self, value: bytes, field: str) -> bytes:
        raise ConnectionError("the key service")

    encrypt = encrypt_deterministic = decrypt


def test_a_key_service_that_is_away_fails_the_call_and_the_attempt(coded, redis_url, prefix):
    coded.create("payment", "p-1", {"mail": MAIL, "account": NUMBER})
    coded.fire("payment", "p-1", "pay", {"card": CARD})
    away = Engine.from_url(redis_url, prefix=prefix, codec=Away())
    with pytest.raises(EncryptionFailed, match="cannot be encrypted: ConnectionError"):
        away.create("payment", "p-2", {"card": CARD})
    assert JobRunner(away, {"charge": charge}).run(["payment"], None, 1, False)[0].outcome == "delayed"
    away.client.close()
    coded.tick("payment", now=coded.read_clock() + 60_000)
    assert run_jobs(coded)[-1:] == ["completed"]


CHANGES = {
    "states.New.on.pay.guard": ("pay", {"guard": "card == 'x'"}),
    "states.New.on.sign.guard": ("sign", {"guard": "event.mail > mail"}),
    "states.New.on.pay.actions[0].set.tries": ("pay", {"actions": [{"set": {"tries": "len(event.card)"}}]}),
    "states.New.on.pay.actions[0].set.card": ("pay", {"actions": [{"set": {"card": "'4111'"}}]}),
    "states.New.on.pay.actions[0].set.mail": ("pay", {"actions": [{"set": {"mail": "event.card"}}]}),
}


@pytest.mark.parametrize("path", CHANGES)
def test_what_cannot_be_worked_out_is_found(path):
    event, transition = CHANGES[path]
    changed = deepcopy(PAYMENT)
    changed["states"]["New"]["on"][event] = {"target": "Known", **transition}
    found = [one for one in compile_definition(changed).findings if one.code == "SB128"]
    assert [one.path for one in found] == [path]


def test_an_index_and_a_first_value_are_found():
    changed = deepcopy(PAYMENT)
    changed["index"] = ["card"]
    changed["context"]["properties"]["account"]["default"] = NUMBER
    found = [one.path for one in compile_definition(changed).findings if one.code == "SB128"]
    assert found == ["index", "context.properties.account"]


def test_without_a_codec_it_is_not_published(engine):
    with pytest.raises(DefinitionError, match="no codec is set"):
        engine.publish(PAYMENT)
    assert "payment" not in engine.machines()


@pytest.fixture
def sent(engine, monkeypatch) -> list[str]:
    """What test runs send to Redis."""
    found: list[str] = []
    call = Caller.compute

    def listen(self, *args):
        found.append(repr(args))
        return call(self, *args)

    monkeypatch.setattr(Caller, "compute", listen)
    return found


def test_a_test_run_needs_no_codec_and_sends_no_value(engine, sent):
    data = {"account": NUMBER, "mail": MAIL, "note": {"kept": [CARD]}}
    ends = {"job": "charge", "done": {"answer": REPLY, "nested": [{"card": CARD}]}}
    steps = engine.simulate(
        PAYMENT, [("sign", {"mail": MAIL + "x"}), {"edit": {"answer": REPLY}}, ("pay", {"card": CARD}), ends], data
    )
    assert [step.outcome for step in steps] == ["taken", "refused", "taken", "taken", "taken"]
    assert steps[3].payload == {"card": CARD}
    assert steps[3].requested[0]["input"] == {"card": CARD, "mail": MAIL}
    assert steps[4].data == {**data, "answer": REPLY, "card": CARD, "tries": 0}
    compared = steps[1].explanation.candidates[1].because[0].values
    assert compared == {"event.mail": MAIL + "x", "mail": MAIL}
    assert engine.simulate(PAYMENT, [("sign", {"mail": MAIL})], data)[-1].state == "Known"
    assert len(sent) >= 2  # a long run takes several calls on a slow machine
    assert not any(text in one for text in PLAIN for one in sent)
    assert not [one for one in engine.verify(PAYMENT) if one.verdict == "found" and one.is_error]


def test_a_test_run_says_what_does_not_fit_without_sending_it(coded, sent):
    coded.create("payment", "p-1")
    for steps in (
        coded.simulate(PAYMENT, [("pay", {"card": NUMBER})], {"mail": MAIL}),
        coded.preview_events("payment", "p-1", [("pay", {"card": NUMBER})]),
    ):
        assert (steps[-1].outcome, steps[-1].payload) == ("bad payload", {"card": NUMBER})
        assert steps[-1].error == "the encrypted field 'card' takes string, not integer"
    for data, events in (({"mail": NUMBER}, []), ({}, [{"edit": {"account": CARD}}])):
        with pytest.raises(BadInput, match="takes (string|integer), not"):
            coded.simulate(PAYMENT, events, data)
    assert len(sent) >= 2  # a long run takes several calls on a slow machine
    assert not any(text in one for text in PLAIN for one in sent)


def test_a_test_run_leaves_ciphertexts_as_they_are(coded):
    data = coded.encrypt("payment", {"card": CARD, "mail": MAIL})
    assert coded.simulate(PAYMENT, [], data)[0].data == {**data, "tries": 0}


def test_a_preview_has_ciphertexts(coded):
    coded.create("payment", "p-1")
    seen = coded.preview_events("payment", "p-1", [("pay", {"card": CARD})])[0]
    assert (seen.state, coded.decrypt(seen.data)["card"]) == ("Charging", CARD)
    assert coded.preview("payment", "p-1", "edit", changes={"mail": MAIL}).changes["mail"].startswith("enc:1:mail:")
    assert coded.explain("payment", "p-1", "pay", {"card": CARD}).taken


def test_an_archived_instance_is_ciphertext_and_is_shown(coded, as_, transactional_db):
    publishing.publish(PAYMENT | {"retain": "1d"})
    at = coded.read_clock() - 2 * DAY
    coded.create("payment", "p-1", {"mail": MAIL}, now=at)
    coded.fire("payment", "p-1", "pay", {"card": CARD}, now=at)
    (job,) = coded.take("payment", "charge", "a worker", now=at)
    coded.complete(job, {"answer": REPLY}, now=at)
    run(RetentionDuty(coded, share=Restless()))
    with pytest.raises(UnknownInstance):
        coded.get("payment", "p-1")
    kept = repr(get_archive().find("payment", "p-1").restore())
    assert "enc:1:answer:" in kept
    assert not any(text in kept + dump_sql() for text in PLAIN)
    assert REPLY in as_("supervisor").get("/machines/payment/instances/p-1/").content.decode()


def change_field(name: str, field: object, event: str = "") -> dict:
    changed = deepcopy(PAYMENT)
    (changed["events"][event]["payload"] if event else changed["context"]["properties"])[name] = field
    return changed


DECLARED_OTHERWISE = {
    "encrypted from now on": change_field("tries", {"type": "integer", "encrypted": True}),
    "plain from now on": {**change_field("account", {"type": "integer"}), "index": []},
    "searchable from now on": change_field("account", {"type": "integer", "encrypted": "searchable"}),
    "another type": change_field("account", {"type": "string", "encrypted": True}),
}


@pytest.mark.parametrize("how", DECLARED_OTHERWISE)
def test_a_field_that_is_published_with_another_encryption_is_refused(coded, how):
    definition = DECLARED_OTHERWISE[how]
    name = "tries" if how.startswith("encrypted") else "account"
    doors = [
        lambda: coded.publish(definition),
        lambda: coded.publish(definition, version=7),
        lambda: coded.publish(definition, rollout=5),
        lambda: publishing.publish(definition),
    ]
    for publish in doors:
        with pytest.raises(DefinitionError, match=f"SB128.*'{name}' is declared .* in version 1") as caught:
            publish()
        assert caught.value.findings[0].hint == "give the field another name"
    assert coded.versions("payment") == [1]
    renamed = change_field("tally", {"type": "integer", "encrypted": True})
    assert coded.publish(renamed).version == 2


@pytest.mark.parametrize("how", [*DECLARED_OTHERWISE, "as before"])
@pytest.mark.parametrize("first", [True, False])
def test_of_two_publishers_at_the_same_moment_one_is_compared_again(engine, redis_url, prefix, monkeypatch, how, first):
    coded, other = (Engine.from_url(redis_url, prefix=prefix, codec=SecretKeyCodec()) for _ in range(2))
    pair = [PAYMENT, DECLARED_OTHERWISE.get(how, PAYMENT | {"description": "a change"})]
    mine, theirs = pair if first else pair[::-1]
    stores: list[Callable[[], object]] = [lambda: other.publish(theirs)]
    store = Catalog._store

    def be_late(self, *args):
        if stores:
            stores.pop()()
        return store(self, *args)

    monkeypatch.setattr(Catalog, "_store", be_late)
    if how == "as before":
        assert coded.publish(mine).version == 2
    else:
        with pytest.raises(DefinitionError, match="SB128.* is declared .* in version 1"):
            coded.publish(mine)
        assert other.versions("payment") == [1]
    for one in (coded, other):
        one.client.close()


def test_a_text_that_looks_like_a_ciphertext_is_a_text(coded, redis_url, prefix):
    texts = {"x": "enc:1:x:AAAA", "card": "enc:1:card:AAAA"}
    coded.enqueue("payment", "lone", texts)
    seen = []
    JobRunner(coded, {"lone": lambda job: seen.append(job.input)}).run(["payment"], None, 10, False)
    assert seen == [texts]
    with pytest.raises(BadPayload, match="takes integer"):
        coded.create("payment", "p-1", {"account": "enc:1:account:AAAA"})


def test_without_a_codec_a_handler_gets_no_ciphertext(coded, redis_url, prefix):
    plain = Engine.from_url(redis_url, prefix=prefix)
    outcomes = []
    for given in ({"x": "enc:1:x:AAAA"}, {"card": CARD}):
        coded.enqueue("payment", "lone", given)
        runner = JobRunner(plain, {"lone": lambda job: job.input})
        outcomes += [run.outcome for run in runner.run(["payment"], None, 10, False)]
    assert outcomes == ["completed", "delayed"]
    plain.client.close()


def test_the_terms_of_a_filter_are_no_fields(coded):
    fields = {name: {"type": "string", "encrypted": True} for name in ("text", "error", "state")}
    changed = deepcopy(PAYMENT)
    changed["context"]["properties"] |= fields
    coded.publish(changed)
    coded.create("payment", "p-1", {"mail": MAIL})
    among = {"state": "New", "where": {"mail": MAIL}}
    order = Order("payment", "fire", "ann", "a test", filter=among, event="pay", payload={"card": CARD})
    stored = [Bulk.start(coded, order).order().filter]
    what = {"do": "fire_all", "machine": "payment", "event": "pay", "payload": {"card": CARD}, "filter": among}
    made = Schedules(coded).put({"name": "nightly", "when": {"every": "1d"}, "what": what})
    stored.append(made.schedule.what["filter"])
    for found in stored:
        assert found == {"state": "New", "where": coded.encrypt("payment", {"mail": MAIL})}


SENT = {"card": CARD, "more": [{"account": NUMBER, "note": None}]}


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ({"do": "fire_all", "filter": {"where": {"mail": MAIL}}, "event": "sign"}, ["filter"]),
        ({"do": "fire", "instance": "p-1", "event": "pay", "payload": SENT}, ["payload", "payload"]),
        ({"do": "create", "data": {"tries": 1, "note": None}}, []),
    ],
)
def test_a_schedule_of_a_definition_holds_no_value(coded, what, found):
    definition = PAYMENT | {"schedules": [{"name": "nightly", "when": {"every": "1d"}, "what": what}]}
    said = [one.path for one in check_defined(compile_definition(definition)) if one.code == "SB128"]
    assert said == [f"schedules[0].what.{part}" for part in found]
    if found:
        with pytest.raises(DefinitionError, match="SB128 .* stands readable here"):
            publishing.publish(definition)
    else:
        publishing.publish(definition)
    assert [row.name for row in Schedules(coded).find()] == ([] if found else ["payment.nightly"])


def test_people_are_shown_what_the_machine_itself_encrypts(coded):
    sealed = coded.encrypt("payment", {"card": CARD, "mail": MAIL})
    coded.publish({"id": "other", "initial": "A", "states": {"A": {}}, "context": {
        "type": "object", "properties": {"card": {"type": "string", "encrypted": True}},
    }})  # fmt: skip
    assert coded.decrypt_for_people("other", sealed) == {"card": CARD, "mail": sealed["mail"]}


def test_values_are_concealed_in_json_too(coded):
    values = {"card": 'a "quoted"\nCÄNARY', "note": {"yes": True, "tiny": 1}}
    job = coded.enqueue("payment", "lone", values)
    held = Job(coded.take("payment", "lone", "a worker")[0], decrypt=coded.decrypt)
    assert (held.id, held.has_secrets, held.input, held.has_secrets) == (job.id, False, values, True)
    for text in (values["card"], json.dumps(values), json.dumps(values, ensure_ascii=False)):
        assert "NARY" not in held.conceal(text)
    assert held.conceal("True and true") == "True and true"


def test_the_engine_for_asyncio_encrypts_too(coded, redis_url, prefix):
    async def fire() -> object:
        async with AsyncEngine.from_url(redis_url, prefix=prefix, codec=SecretKeyCodec()) as engine:
            await engine.create("payment", "p-1", {"mail": MAIL})
            moved = await engine.fire("payment", "p-1", "pay", {"card": CARD})
            return await engine.decrypt(moved.data)

    assert asyncio.run(fire()) == {"card": CARD, "mail": MAIL, "tries": 0}
    assert coded.get("payment", "p-1").data["card"].startswith("enc:1:card:")


def test_a_codec_that_takes_its_time_does_not_hold_up_the_event_loop(coded, redis_url, prefix):
    begun, let = threading.Event(), threading.Event()

    class Slow(SecretKeyCodec):
        def encrypt(self, value: bytes, field: str) -> bytes:
            begun.set()
            assert let.wait(60), "the event loop is held up"
            return super().encrypt(value, field)

    async def encrypt() -> None:
        async with AsyncEngine.from_url(redis_url, prefix=prefix, codec=Slow()) as engine:
            await engine.publish(PAYMENT)
            sealing = asyncio.ensure_future(engine.encrypt("payment", {"card": CARD}))
            assert await asyncio.to_thread(begun.wait, 60)
            let.set()
            assert coded.decrypt(await sealing) == {"card": CARD}

    asyncio.run(encrypt())
