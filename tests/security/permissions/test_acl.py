"""Each account has exactly the commands that it needs: on real servers with these lines all goes well, and what is
missing from one is named."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from channels.db import database_sync_to_async
from django.core.checks import run_checks
from django.test import Client

from dashboard.live.hub import hub
from dashboard.serving.checks import redis_accounts, system_checks
from dashboard.serving.checks.redis_accounts import ACCOUNTS
from dashboard.site import stores
from machines.conf.server import Server
from machines.engine import Engine, NotPermitted, WorkerInfo
from machines.engine.connection import library, server_permissions
from machines.patterns import Bus, Cardinality, Locks, Records, Scoreboard, Sessions, Stream, Throttle, WriteBuffer
from machines.patterns.cas import Values
from machines.patterns.write_buffer import Write
from tests.cases import for_each
from tests.configuration import configure
from tests.conftest import program
from tests.engine.builders import door, errand, machine
from tests.installation.processes import ROOT, eventually
from tests.live.sockets import Socket, visitor
from tests.security.disclosure import planted
from tests.security.disclosure.planted import NAME, plant
from tests.security.disclosure.test_leaks import pages
from tests.worker import builders

PREFIX = "sb:"
DANGEROUS = (
    "keys flushall flushdb config|set config|get eval script|load debug shutdown acl|setuser replicaof monitor "
    "client|kill function|restore function|flush publish"
)
HARMLESS = {"client|setinfo", "client|maint_notifications"}
"""What the client library tries with each connection, and goes on without."""


class Place:
    """A server that knows the accounts; ``url(account)`` is how one gets there."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.owner = redis.Redis.from_url(server.url, decode_responses=True)
        self.owner.config_set("notify-keyspace-events", "K$")
        for name in ACCOUNTS:
            self.give(name)

    def give(self, name: str, *, but: str = "") -> None:
        """The account with its line, ``but`` for one word of it."""
        rules = ACCOUNTS[name].rules(PREFIX)
        assert not but or but in rules, but
        self.owner.execute_command("ACL", "SETUSER", name, *(rule for rule in rules if rule != but), ">a-password")
        for client in self.owner.client_list():
            if client.get("user") == name:
                with suppress(redis.RedisError):
                    self.owner.client_kill_filter(_id=client["id"])

    def url(self, name: str) -> str:
        return self.server.url.replace("unix://", f"unix://{name}:a-password@", 1)

    def lasting_keys(self) -> set[str]:
        """All keys that do not expire by themselves."""
        return {key for key in self.owner.scan_iter() if self.owner.ttl(key) == -1}

    def denied(self) -> set[str]:
        """What any account was refused since the last look."""
        found = {f"{entry['reason']} {entry['object']}" for entry in self.owner.acl_log()}
        self.owner.acl_log_reset()
        return {text for text in found if text.partition(" ")[2] not in HARMLESS}

    def called(self) -> set[str]:
        """Every command that was run, since the server began, as ACL SETUSER names it."""
        return {name.removeprefix("cmdstat_") for name in self.owner.info("commandstats")}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("", id="valkey"),
        pytest.param("redis", id="redis 7.0", marks=pytest.mark.second_redis),
    ],
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with Server(tmp_path_factory.mktemp("acl"), program=program(request.param), persistent=False) as server:
        made = Place(server)
        yield made
        made.owner.close()


@pytest.fixture
def as_account(place: Place, settings) -> Iterator[Callable[[str], Engine]]:
    """An engine of an account, with the site pointed at it; the deployment account has loaded the library before. All
    keys go at the end."""
    made = [Engine.from_url(place.url("deploy"), prefix=PREFIX)]
    made[0].load_library(again=False)

    def act(name: str) -> Engine:
        configure(settings, REDIS_URL=place.url(name))
        configure(settings, PREFIX=PREFIX)
        settings.CACHES = stores.caches(place.url(name), PREFIX)
        made.append(Engine.from_url(place.url(name), prefix=PREFIX))
        return made[-1]

    yield act
    for engine in made:
        engine.client.close()
    for name in ACCOUNTS:
        place.give(name)
    place.owner.flushdb()
    place.denied()


# The lists


def run_by_lua() -> set[str]:
    """Every command that a file of the library runs."""
    found = set()
    for path in library.FOLDER.rglob("*.lua"):
        text = re.sub(r"--[^\n]*", "", path.read_text(encoding="utf-8"))
        for command, inner in re.findall(r"(?:call|pcall_redis)\s*[(,]\s*'([A-Z]+)'(?:\s*,\s*'([A-Z]+)')?", text):
            found.add(f"{command}|{inner}".lower() if command in ("XGROUP", "XINFO") else command.lower())
    return found


def sent_by_python() -> set[str]:
    """Words in quotes, or methods of a client, that are commands, in what an engine or a pattern sends beside it."""
    machines = library.FOLDER.parent.parent
    texts = [
        path.read_text(encoding="utf-8")
        for folder in ("engine", "patterns", "bulk", "mapreduce")
        for path in (machines / folder).rglob("*.py")
        if path.name != "server_permissions.py"
    ]
    words = {word.lower() for text in texts for word in re.findall(r'"([A-Z_]{3,})"', text)}
    calls = {
        word for text in texts for word in re.findall(r"(?:client|_client|redis|pipe|pipeline)\.([a-z_]+)\(", text)
    }
    return words | calls


def test_what_a_step_needs_is_what_the_library_runs_and_the_engine_sends() -> None:
    step = set(server_permissions.STEP)
    assert len(step) == len(server_permissions.STEP)
    assert run_by_lua() <= step
    beside = step - run_by_lua()
    assert beside <= sent_by_python(), beside - sent_by_python()


def test_the_library_asks_for_the_same_commands() -> None:
    text = library.function_paths()["sb_permitted"].read_text(encoding="utf-8")
    table = text[text.index("COMMANDS = {") : text.index("CONTAINERS =")]
    asked = set()
    for example in re.findall(r"'([^']+)'", table):
        first, *rest = example.lower().split()
        asked.add(f"{first}|{rest[0]}" if first in ("xgroup", "xinfo") else first)
    assert asked == set(server_permissions.STEP)


def test_only_the_deployment_account_may_change_the_library() -> None:
    for name, account in ACCOUNTS.items():
        held = {command for command in account.commands if command.startswith("function")}
        assert held == ({"function|delete", "function|list", "function|load"} if name == "deploy" else set()), name


def test_no_account_may_do_more_than_it_needs() -> None:
    dangerous = set(DANGEROUS.split())
    for name, account in ACCOUNTS.items():
        words = account.rules(PREFIX)
        assert not any(word.startswith(("+@", "allkeys", "allcommands", "allchannels", "nopass")) for word in words)
        assert "~*" not in words
        assert "&*" not in words
        assert not dangerous & set(account.commands), name
    assert not set(ACCOUNTS["reader"].commands) & set(server_permissions.WRITES) - {"xread"}
    assert "%R~sb:*" in ACCOUNTS["reader"].rules(PREFIX)


def test_the_page_has_each_line_as_the_command_prints_it() -> None:
    page = " ".join((ROOT / "docs" / "acl.md").read_text(encoding="utf-8").split())
    for name in ACCOUNTS:
        assert redis_accounts.line(name) in page, f"`python -m dashboard.serving.checks.redis_accounts {name}`"


# At work


def at_patterns(engine: Engine) -> None:
    """Each pattern, with what it does seldom among it."""
    at_streams(engine.client, engine.keys.prefix)
    at_values(engine.client, engine.keys.prefix)
    engine.new_id()
    engine.publish(machine("two", {"A": {"on": {"go": {"actions": {"send": {"event": "hi", "to": "'#_scxml_two/b'"}}},
                                                "hi": {}}}}))  # fmt: skip
    for id in "ab":
        engine.create("two", id)
    engine.fire("two", "a", "go")
    engine.tick("two")


def at_streams(client: redis.Redis, prefix: str) -> None:
    """Patterns of sessions and messages."""
    sessions = Sessions(client, "s", prefix=prefix, ttl=60, most=2)
    tokens = [sessions.create("ann", {"n": n}).token for n in range(2)]
    sessions.put(tokens[0], {"n": 3})
    sessions.rotate(tokens[1])
    sessions.of("ann")
    sessions.revoke_all("ann")
    buffer = WriteBuffer(client, "w", prefix=prefix)
    buffer.add_many([Write("e", {"n": 1}, {"f": 1})])
    buffer.flush(lambda batch: None)
    buffer.stats()
    with Bus(client, prefix).subscribe("t") as heard:
        Bus(client, prefix).publish("t", 1)
        assert heard.get(60) is not None
    stream = Stream(client, "x", prefix=prefix, most=5)
    stream.group("g", start="0")
    for n in range(3):
        stream.append(n)
    (first, *rest) = stream.read("g", "one", count=3)
    stream.ack("g", first.id)
    stream.give_back("g", "one", *(entry.id for entry in rest))
    stream.read("g", "two", count=3, idle=0.001)
    stream.lag()
    stream.dead()
    stream.forget_group("g")


def at_values(client: redis.Redis, prefix: str) -> None:
    """Patterns of locks and values."""
    with Locks(client, prefix=prefix).lock("l", ttl=5) as lock:
        lock.renew()
    scores = Scoreboard(client, "b", prefix=prefix, most=3, period="day", keep=3)
    scores.set_many({"a": 1, "b": 2, "c": 3, "d": 4})
    scores.add("a", 2)
    scores.top(2, span=2)
    scores.around("a")
    scores.remove("a")
    counted = Cardinality(client, "c", prefix=prefix)
    counted.add("month", *map(str, range(50)))
    counted.count("month")
    records = Records(client, "r", prefix=prefix)
    held = records.put("k", {"n": 1}, expect=None)
    records.put("k", {"n": 2}, expect=held.generation)
    records.delete("k", expect=None)
    records.put("k", {"n": 3}, expect=None)
    client.set("mine:text", "1")
    Values(client, prefix).update("mine:text", lambda text: "2")
    client.hset("mine:hash", mapping={"a": "1"})
    Values(client, prefix).update("mine:hash", lambda fields: fields | {"b": "2"})
    Locks(client, prefix=prefix).lock("held", ttl=5).acquire()
    Locks(client, prefix=prefix).peek("held")
    counted.count("month", parts=["", "other"])
    throttle = Throttle(client, prefix=prefix)
    throttle.take("t", "k", limit=5, per=60)
    throttle.count("t", "c", limit=5, per=60)


def at_engine(engine: Engine) -> None:
    """What a program does: machines in every state, repairs, queues, searches."""
    found = plant(engine)
    now = engine.live(NAME).now
    for repair in ("suspend", "resume"):
        getattr(engine, repair)(NAME, found.shut, actor="ann", reason="a test")
    engine.force(NAME, found.shut, "Shut", actor="ann", reason="a test", key="once")
    engine.edit(NAME, found.shut, {"owner": "bob"}, actor="ann", reason="a test")
    engine.reset(NAME, found.shut, actor="ann", reason="a test")
    engine.delete(NAME, found.waiting, actor="ann", reason="a test")
    engine.publish(machine("stock", {"A": {"tags": ["t"], "sla": "1s", "on": {"go": "B"}}, "B": {}},
                           index=["instance.id", "instance.actor", "n"], context={"n": 0}))  # fmt: skip
    for n in range(4):
        engine.create("stock", f"s{n}", {"n": n}, actor="ann", now=now - 10_000)
    asked: list[dict[str, Any]] = [{"where": {"n": {"ge": 1}}}, {"id_prefix": "s"}, {"tag": "t"}, {"actor": "ann"}]
    asked += [{"error": "any"}, {"where": {"n": 2}, "state": "A"}, {"older_than": 1}, {"state": "A", "newest": True}]
    for terms in asked:
        engine.find("stock", **terms)
        engine.tally("stock", **{name: term for name, term in terms.items() if name != "newest"})
    engine.reindex("stock")
    engine.publish(errand())
    job = engine.enqueue("errand", "tidy", {"a": 1}, queue="spare", unique="u", delay=5000, priority=1)
    engine.pause("errand", "spare", actor="ann", reason="a test")
    engine.resume_queue("errand", "spare", actor="ann", reason="a test")
    engine.limit("errand", "spare", concurrency=1, actor="ann", reason="a test")
    engine.withdraw("errand", job, actor="ann", reason="a test")
    for n in range(3):
        engine.enqueue("errand", "tidy", {"n": n}, queue="spare")
    (taken,) = engine.take("errand", "spare", "w")
    engine.renew(taken, 10_000)
    engine.fail(taken, "no", retry=False)
    engine.redrive("errand", "spare", actor="ann", reason="a test")
    engine.purge("errand", "spare", place="ready", actor="ann", reason="a test")
    engine.mend("errand")
    engine.sweep("errand")
    engine.beat(WorkerInfo("w", "host", 1, [], in_hand=0, started=now, seen=now))
    engine.direct("w", "quiet", actor="ann", reason="a test")
    engine.workers()
    engine.leave("w")
    engine.tick()


def at_reading(engine: Engine) -> None:
    """All that only looks."""
    assert engine.machines()[NAME] == 1
    engine.definition(NAME)
    engine.versions(NAME)
    instance = engine.get(NAME, "p-1")
    engine.history(NAME, instance.id)
    engine.explain(NAME, instance.id, "wrap")
    engine.find(NAME, state="Shut")
    engine.find(NAME, where={"owner": "ann"})
    engine.find(NAME, error="any")
    engine.tally(NAME, state="Shut")
    engine.counts(NAME)
    engine.live(NAME)
    engine.survey()
    engine.waits(NAME, "p-2")
    engine.problems(NAME, ["p-2"])
    engine.stats(NAME)
    for at in ("ready", "dead", "leased"):
        engine.jobs(NAME, planted.QUEUE, place=at)
    engine.workers()
    engine.sensitive(NAME)
    engine.ping()


@pytest.mark.django_db
def test_a_program_does_all_of_it_with_its_line_and_nothing_is_refused(place: Place, as_account) -> None:
    place.owner.config_resetstat()
    engine = as_account("engine")
    assert engine.missing_commands() == []
    place.owner.execute_command("ACL", "SETUSER", "engine", "~mine:*")  # keys of its own, which its line names
    at_engine(engine)
    at_patterns(engine)
    assert place.denied() == set()
    assert run_by_lua() - place.called() <= set(SELDOM), " ".join(sorted(run_by_lua() - place.called()))


SELDOM = {
    "hkeys": "a partition that a growing machine copied instances to",
    "lpush": "waking takers that wait on bell lists",
    "ltrim": "the same",
    "rpop": "taking back a step that failed half-way",
    "sunion": "counting what several sets have, where they are small",
    "xgroup|delconsumer": "readers of a stream that have been gone for long",
    "xgroup|setid": "a group whose place in its stream is gone",
    "xinfo|consumers": "the same readers",
    "xtrim": "a stream that is longer than it may be",
    "zrevrangebylex": "lists by an index, newest first",
    "zscan": "looking for jobs in places that are not theirs",
}
"""Commands of the library that the program above has no occasion for."""


@pytest.mark.django_db
def test_who_only_looks_sees_all_with_its_line_and_changes_nothing(place: Place, as_account) -> None:
    plant(as_account("engine"))
    place.denied()
    before = place.lasting_keys()
    reader = as_account("reader")
    at_reading(reader)
    assert place.denied() == set()
    with pytest.raises(NotPermitted, match="lacks fcall"):
        reader.fire(NAME, "p-1", "ring")
    assert place.lasting_keys() == before


@pytest.mark.matrix
@pytest.mark.django_db
def test_the_site_shows_every_page_with_its_line(place: Place, as_account, user_of) -> None:
    found = plant(as_account("web"))
    client = Client()
    client.force_login(user_of("supervisor", "ann"))
    for address in pages(found, 1):
        if address.startswith("/sm/signalbox"):
            continue  # a key of another program, which its line would have to name
        assert client.get(address).status_code in (200, 302, 403, 404, 405, 409, 410), address
    instance = f"/machines/{NAME}/instances/{found.shut}/"
    version = as_account("web").get(NAME, found.shut).revision
    form = {"event": "ring", "expect": version, "reason": "a test", "key": "a-key-of-this-form"}
    assert client.post(f"{instance}fire/", form).status_code == 302
    assert client.get("/healthz").json()["redis"] == "ok"
    assert client.get("/readyz").json()["library"] == "ok"
    assert client.post("/accounts/logout/").status_code == 302
    refused = {text for text in place.denied() if "config|" not in text}
    assert refused == set()
    assert [found.id for found in run_checks(tags=["signalbox"]) if found.is_serious()] == []


@pytest.mark.django_db(transaction=True)
async def test_the_live_view_hears_each_step_with_its_line(place: Place, as_account) -> None:
    engine = as_account("web")
    engine.publish(door())
    engine.create("door", "north")
    _, cookie = await visitor("viewer", "view")
    socket = Socket(cookie)
    await socket.connect()
    await socket.subscribe("machine:door")
    await socket.sees("machine:door", counts={"Shut": 1, "Open": 0})
    await database_sync_to_async(engine.fire)("door", "north", "open")
    await socket.sees("machine:door", counts={"Shut": 0, "Open": 1})
    await socket.disconnect()
    assert {text for text in place.denied() if "config|" not in text} == set()


@pytest.mark.faults
def test_a_worker_works_and_waits_with_its_line(place: Place, as_account, tmp_path: Path) -> None:
    engine = as_account("worker")
    engine.publish(builders.errand(src="quick"))
    for number in range(3):
        engine.create("errand", f"e{number}")
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.worker.settings", "REDIS_URL": place.url("worker"),
        "SIGNALBOX_PREFIX": PREFIX, "DATABASE_URL": f"sqlite:///{tmp_path}/worker.sqlite3", "LOG_LEVEL": "DEBUG",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "manage.py", "worker"], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        eventually(lambda: engine.counts("errand")["done"] == 3, "three jobs are done")
        engine.create("errand", "late")  # it waits, and is woken
        eventually(lambda: engine.counts("errand")["done"] == 4, "a job wakes a worker that waits")
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=90)
    assert process.returncode == 0, said
    assert {text for text in place.denied() if "config|" not in text} == set(), said
    assert "ssubscribe" in place.called()


# What is missing


@pytest.mark.matrix
@for_each("command", server_permissions.STEP)
def test_each_command_that_is_missing_is_named_by_the_check(place: Place, as_account, command: str) -> None:
    as_account("web")
    place.give("web", but=f"+{command}")
    as_account("web")
    messages = system_checks.redis_server(None)
    found = [one for one in messages if one.id == "signalbox.E011"]
    assert found, messages
    assert re.search(rf"lacks {re.escape(command)}$", found[0].msg), found[0].msg


@pytest.mark.parametrize("command", ["zadd", "hset", "time", "fcall", "fcall_ro", "hget", "xadd"])
def test_a_step_that_lacks_one_is_refused_whole_and_says_which(place: Place, as_account, command: str) -> None:
    engine = as_account("engine")
    plant_one(engine)
    before = kept(place)
    place.give("engine", but=f"+{command}")
    with pytest.raises(NotPermitted, match=rf"lacks {command} ") as caught:
        looked_and_rung(as_account("engine"))
    assert (caught.value.code, caught.value.missing) == ("SB511", [command])
    place.give("engine")
    assert as_account("engine").get("bell", "front").revision == 1
    assert kept(place) == before


def looked_and_rung(engine: Engine) -> None:
    engine.get("bell", "front")
    engine.fire("bell", "front", "ring")


def kept(place: Place) -> dict[str, Any]:
    """The instance, and where it is listed."""
    root = "sb:{bell:0}"
    listed = {state: place.owner.zrange(f"{root}:in:{state}", 0, -1) for state in ("Ready", "Rung")}
    return listed | {"instance": place.owner.hgetall(f"{root}:i:front")}


def plant_one(engine: Engine) -> None:
    engine.publish(machine("bell", {"Ready": {"on": {"ring": {"target": "Rung", "actions": {"emit": {"type": "r"}}}}},
                                    "Rung": {}}))  # fmt: skip
    engine.create("bell", "front")


def test_an_account_whose_keys_are_others_is_told_so(place: Place, as_account) -> None:
    plant_one(as_account("engine"))
    place.give("engine", but="~sb:*")
    with pytest.raises(NotPermitted, match="a pattern for the keys in use"):
        as_account("engine").fire("bell", "front", "ring")


@pytest.mark.django_db
@pytest.mark.parametrize(("missing", "word"), [("+fcall_ro", "fcall_ro"), ("+get", "get"), ("~sb-web*", "keys in use")])
def test_a_page_says_what_is_missing_and_not_that_redis_is_away(
    place: Place, as_account, user_of, missing: str, word: str
) -> None:
    plant_one(as_account("web"))
    client = Client(raise_request_exception=False)
    client.force_login(user_of("supervisor", "ann"))
    place.give("web", but=missing)
    as_account("web")
    answer = client.get("/machines/bell/", headers={"Accept": "text/html"})
    text = answer.content.decode()
    assert answer.status_code in (500, 503), text
    assert "does not answer" not in text
    assert "SB511" in text, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))
    assert word in text
    problem = client.get("/api/v1/machines/bell/instances/front").json()
    assert (problem["code"], problem["status"] >= 500) == ("SB511", True)
    assert "does not answer" not in json.dumps(problem)


@pytest.mark.django_db
@pytest.mark.parametrize("missing", ["+ping", "+hget", "+fcall_ro", "+fcall", "~sb:*", "~sb-web*"])
def test_probes_and_the_start_of_a_site_name_a_missing_right(place: Place, as_account, missing: str) -> None:
    place.give("web", but=missing)
    as_account("web")
    found = Client().get("/readyz")
    assert (found.status_code, "SB511" in found.json().values()) == (503, True), found.json()
    assert "SB500" not in found.json().values()
    if missing != "~sb-web*":
        assert Client().get("/healthz").json()["redis"] == "SB511"
    said = system_checks.refusals()
    assert said.count("signalbox.E011") == 1, said
    assert "does not answer" not in said


@pytest.mark.django_db
@pytest.mark.parametrize("missing", ["+hgetall", "+time", "~sb:*"])
def test_a_page_without_a_socket_is_told_what_is_missing(place: Place, as_account, user_of, missing: str) -> None:
    plant_one(as_account("web"))
    client = Client(raise_request_exception=False)
    client.force_login(user_of("supervisor", "ann"))
    place.give("web", but=missing)
    as_account("web")
    answer = client.get("/api/v1/live/?topic=machine:bell")
    assert answer.status_code in (500, 503), answer.content
    assert "does not answer" not in answer.content.decode()
    assert "SB511" in answer.content.decode() or "lacks" in answer.content.decode()


@pytest.mark.django_db(transaction=True)
async def test_the_live_view_says_what_is_missing(place: Place, as_account) -> None:
    engine = as_account("web")
    engine.publish(door())
    _, cookie = await visitor("viewer", "view")
    place.give("web", but="+subscribe")
    as_account("web")
    socket = Socket(cookie)
    await socket.connect()
    await socket.subscribe("machine:door")
    await eventually_async(lambda: hub.denial() is not None)
    assert "subscribe" in str(hub.denial())
    answer = await database_sync_to_async(Client().get)("/readyz")
    assert answer.json()["live"] == "SB511"
    place.give("web")
    await socket.sees("machine:door", counts={"Shut": 0, "Open": 0})
    assert hub.denial() is None
    await socket.disconnect()


async def eventually_async(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
