"""Downgrades are refused: what older releases do on the data of this one, and what this one does on those of a newer.

The table in docs/deploy.md is made of what these tests see.
"""

import re

import pytest
import redis

from dashboard.serving.checks.redis_accounts import ACCOUNTS
from machines.engine import Engine, data_layout, errors
from machines.engine.connection import library
from machines.engine.connection.library_loader import read_held
from machines.management import library_command
from tests.engine.builders import door, publish
from tests.engine.releases.test_side_by_side import ROOT, THIS, Process, as_release

NEXT_NAME = f"{library.FAMILY}_{data_layout.READER + 1}"  # the library of a release with the next layout
PASSWORD = "a-password"


@pytest.fixture
def data(own_engine):
    """An instance with a packed history, of this release."""
    publish(own_engine, door(), "x")
    own_engine.fire("door", "x", "open")
    own_engine.fire("door", "x", "close")
    return own_engine


def of_next_release(serves=0):
    """The text of this library as a later release with another layout would have it."""
    text = as_release(THIS + 1).replace(f"name={library.NAME}\n", f"name={NEXT_NAME}\n")
    return re.sub(r", \d+ \} end \}\n\Z", f", {serves} }} end }}\n", text)


def put_next_release(engine, serves=0):
    engine.client.function_delete(library.NAME)
    engine.client.function_load(of_next_release(serves))
    engine.client.hset(engine.keys.layout, mapping={"number": data_layout.LAYOUT + 1, "reader": data_layout.LAYOUT + 1})


def run_before(before, url):
    return Process("downgrade.py", before, url).finish()


def run_of_layout(number, url):
    """This release's code as it would be with an older layout and number."""
    return Process("downgrade.py", ROOT, url, number).finish()


def kept(engine):
    """All keys that do not expire by themselves."""
    keys = [key for key in engine.client.scan_iter("sb:*") if engine.client.ttl(key) == -1]
    with redis.Redis.from_url("unix://" + engine.client.get_connection_kwargs()["path"]) as raw:
        return {key: raw.dump(key) for key in keys}


def test_the_release_before_works_with_this_library_and_cannot_load_its_own_over_it(before, own_server, data):
    found = run_before(before, own_server.url)
    assert found["load"][:2] == ["EngineFault", "SB510"]
    assert "already exists" in found["load"][2]
    assert [found[name][0] for name in ("fire", "history", "history after")] == ["ok"] * 3
    assert read_held(data.client).is_ours
    assert len(data.history("door", "x")) == 4


def test_a_library_that_the_release_before_loaded_on_an_empty_server_is_replaced_and_nothing_is_lost(
    before, own_server, data
):  # fmt: skip
    data.client.function_flush()
    found = run_before(before, own_server.url)
    assert found["history"][0] == "JSONDecodeError"  # cannot be changed any more: it cannot read packed entries
    assert read_held(data.client).number == 0
    assert [step.event for step in data.history("door", "x")] == ["open", "close", "open", "(create)"]
    assert read_held(data.client).is_ours
    assert len(data.client.function_list()) == 1


def test_an_account_that_may_not_load_keeps_the_release_before_from_it(before, own_server, data):
    data.client.execute_command("ACL", "SETUSER", "worker", *ACCOUNTS["worker"].rules(), f">{PASSWORD}")
    url = own_server.url.replace("unix://", f"unix://worker:{PASSWORD}@", 1)
    data.client.function_flush()
    found = run_before(before, url)
    assert [found[name][:2] for name in ("fire", "history", "load")] == [["NotPermitted", "SB511"]] * 3
    assert data.client.function_list() == []
    worker = Engine.from_url(url)
    with pytest.raises(errors.LibraryNotLoaded, match="signalbox library load"):
        worker.history("door", "x")
    data.load_library()
    assert len(worker.history("door", "x")) == 3
    worker.client.close()


def test_a_history_that_only_an_older_library_is_there_for_is_an_error_with_a_name(before, own_server, data):
    """For an account that may not load, in a process that runs already."""
    data.client.execute_command("ACL", "SETUSER", "web", *ACCOUNTS["web"].rules(), f">{PASSWORD}")
    web = Engine.from_url(own_server.url.replace("unix://", f"unix://web:{PASSWORD}@", 1))
    assert len(web.history("door", "x")) == 3
    data.client.function_flush()
    run_before(before, own_server.url)
    for read in (lambda: web.history("door", "x"), lambda: web.inspect("door", "x")):
        with pytest.raises(errors.LibraryNotLoaded, match="of release 0.*signalbox library load"):
            read()
    data.load_library()
    assert len(web.history("door", "x")) == len(web.inspect("door", "x").steps) == 4
    web.client.close()


def test_a_release_of_an_older_layout_neither_starts_nor_loads(own_server, data):
    before = kept(data)
    found = run_of_layout(data_layout.LAYOUT - 1, own_server.url)
    assert {row[0] + row[1] for row in found.values()} == {"EngineFaultSB512"}
    assert all("no downgrade" in row[2] and "Start the newer release" in row[2] for row in found.values())
    assert read_held(data.client).is_ours
    data.client.function_flush()  # even where nothing is there
    assert {row[1] for row in run_of_layout(data_layout.LAYOUT - 1, own_server.url).values()} == {"SB512"}
    assert data.client.function_list() == []
    assert kept(data) == before


def test_this_release_neither_starts_on_data_of_a_newer_one_nor_loads_over_it(own_server, data):
    put_next_release(data)
    before, written = kept(data), []
    late = Engine.from_url(own_server.url)
    for call in (
        lambda: late.history("door", "x"),
        late.load_library,
        late.require_library,
        lambda: library_command.load(late, written.append),
    ):
        with pytest.raises(errors.EngineFault, match="no downgrade.*Start the newer release") as caught:
            call()
        assert caught.value.code == "SB512"
    with pytest.raises(redis.ResponseError, match="already exists"):  # nor would the server let it
        late.client.function_load(library.text(), replace=True)
    assert (kept(data), read_held(data.client).number) == (before, THIS + 1)
    late.client.close()


def test_a_library_of_the_future_that_serves_this_release_stays_and_the_command_says_so(own_server, data):
    data.client.function_delete(library.NAME)
    data.client.function_load(of_next_release())
    written = []
    with pytest.raises(library_command.Failed, match="1 of 1 servers"):
        library_command.load(data, written.append)
    assert f"no downgrade: the library of release {THIS + 1} stays" in written[0]
    assert Engine.from_url(own_server.url).get("door", "x").state == "Shut"
    assert read_held(data.client).number == THIS + 1


def test_a_library_of_the_future_that_serves_this_release_no_more_is_refused(own_server, data):
    data.client.function_delete(library.NAME)
    data.client.function_load(of_next_release(serves=THIS + 1))
    before = kept(data)
    late = Engine.from_url(own_server.url)
    for call in (lambda: late.get("door", "x"), late.load_library, late.require_library):
        with pytest.raises(errors.EngineFault, match=f"no downgrade.*serves programs of release {THIS + 1}") as caught:
            call()
        assert caught.value.code == "SB516"
    assert (kept(data), read_held(data.client).number) == (before, THIS + 1)
    late.client.close()


@pytest.mark.parametrize("value", ["", "two", "-1", "2.0", "9" * 12])
@pytest.mark.parametrize("field", ["number", "reader"])
def test_a_number_of_the_layout_that_cannot_be_read_is_refused_with_the_way_back(own_server, data, field, value):
    before = data.client.hgetall(data.keys.layout)
    data.client.hset(data.keys.layout, field, value)
    late = Engine.from_url(own_server.url)
    for call in (lambda: late.get("door", "x"), late.load_library):
        with pytest.raises(
            errors.EngineFault, match=f"the field {field} of sb:layout.*HSET sb:layout number N"
        ) as caught:
            call()
        assert caught.value.code == "SB514"
    data.client.hset(data.keys.layout, mapping={"number": data_layout.LAYOUT, "reader": data_layout.READER} | before)
    assert late.get("door", "x").state == "Shut"
    late.client.close()


def test_a_key_of_another_type_in_the_place_of_the_layout_is_told_so(own_server, data):
    data.client.delete(data.keys.layout)
    data.client.set(data.keys.layout, "2")
    with pytest.raises(errors.EngineFault, match="sb:layout is no hash") as caught:
        Engine.from_url(own_server.url).get("door", "x")
    assert caught.value.code == "SB514"


def test_an_entry_that_is_damaged_is_an_error_with_a_name(data):
    data.client.lset(data.keys.partition("door", 0).history("x"), 0, "[broken")
    with pytest.raises(errors.EngineFault, match="cannot be read.*damaged") as caught:
        data.history("door", "x")
    assert caught.value.code == "SB517"


def test_the_archive_leaves_what_an_older_library_cannot_unpack(before, own_server, own_engine):
    own_engine.publish(door() | {"states": {"Shut": {"on": {"open": "Open"}}, "Open": {"type": "final"}}})
    own_engine.create("door", "x")
    own_engine.fire("door", "x", "open")
    retirement = own_engine.retirement()
    (partition,) = retirement.partitions("door")
    own_engine.client.function_flush()
    Process("downgrade.py", before, own_server.url).finish()
    with pytest.raises(errors.EngineFault) as caught:
        retirement.read("door", partition, "Open", 2**52, skip=0, limit=10)
    assert caught.value.code == "SB517"
    assert own_engine.get("door", "x").state == "Open"


# The table


def describe(row):
    """An outcome in words of the page."""
    kind, code, message = row
    if kind == "ok":
        return "works"
    if "already exists" in message:
        return "the server refuses it (`SB510`)"
    return f"`{code}`" if code else f"fails (`{kind}`)"


def test_the_page_has_the_table_of_what_older_releases_did_here(before, own_server, data):
    url = own_server.url
    outcomes = {"the release before this one": run_before(before, url)}
    data.client.function_flush()
    outcomes["the same, where the server had lost the library"] = run_before(before, url)
    data.load_library()
    outcomes[f"one that knows layout {data_layout.LAYOUT - 1}"] = run_of_layout(data_layout.LAYOUT - 1, url)
    put_next_release(data)
    outcomes[f"this one (layout {data_layout.LAYOUT}), on data of layout {data_layout.LAYOUT + 1}"] = run_of_layout(
        data_layout.LAYOUT, url
    )
    rows = [
        f"| {name} | {' | '.join(describe(found[step]) for step in ('fire', 'history', 'load'))} |"
        for name, found in outcomes.items()
    ]
    table = "\n".join(["| release | a step | `history()` | loading its library |", "|---|---|---|---|", *rows])
    assert table in (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8"), table
