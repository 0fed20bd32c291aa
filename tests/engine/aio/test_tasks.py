"""Many tasks on one AsyncEngine: no call is lost, mixed up or doubled, and locks hold up tasks and not the loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter

import pytest

from machines.engine import AsyncEngine, Conflict, Engine, SignalboxError
from machines.engine.connection import waiting
from tests.engine.builders import counter, door, errand, machine

MANY = 1000
COUNT = machine("tally", {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}}, context={"n": 0})


async def test_of_a_thousand_that_expect_the_same_revision_one_goes_through(awaited):
    await awaited.publish(COUNT)
    first = await awaited.create("tally", "x")
    calls = [awaited.fire("tally", "x", "add", expect=first.revision) for _ in range(MANY)]
    ends = Counter(type(one).__name__ for one in await asyncio.gather(*calls, return_exceptions=True))
    assert ends == {"Instance": 1, "Conflict": MANY - 1}
    assert (await awaited.get("tally", "x")).data == {"n": 1}


async def test_a_thousand_on_one_instance_all_happen_in_some_order(awaited):
    await awaited.publish(COUNT)
    await awaited.create("tally", "x")
    found = await asyncio.gather(*(awaited.fire("tally", "x", "add") for _ in range(MANY)))
    assert sorted(one.revision for one in found) == list(range(2, MANY + 2))
    assert all(one.data["n"] == one.revision - 1 for one in found)


async def test_a_thousand_on_as_many_instances_get_each_its_own_answer(awaited):
    await awaited.publish(COUNT)
    made = await asyncio.gather(*(awaited.create("tally", data={"n": number}) for number in range(MANY)))
    assert len({one.id for one in made}) == MANY

    async def follow(id: str, number: int) -> None:
        fired = await awaited.fire("tally", id, "add", expect=1)
        assert (fired.id, fired.data["n"]) == (id, number + 1)
        steps, read = await asyncio.gather(awaited.history("tally", id), awaited.get("tally", id))
        assert [step.revision for step in steps] == [2, 1]
        assert read.id == id

    await asyncio.gather(*(follow(one.id, number) for number, one in enumerate(made)))
    assert (await awaited.counts("tally"))["On"] == MANY


async def test_calls_of_all_kinds_at_once_share_one_connection(awaited, cleaner):
    await awaited.publish(errand())
    await awaited.create("errand", "x")
    before = len(cleaner.client_list())
    calls = [
        call
        for _ in range(20)
        for call in (
            awaited.get("errand", "x"),
            awaited.counts("errand"),
            awaited.find("errand"),
            awaited.survey(),
            awaited.explain("errand", "x", "start"),
            awaited.fire_many([("errand", "x", "start"), ("errand", "x", "abandon")]),
            awaited.queues("errand"),
            awaited.create("errand"),
        )
    ]
    found = await asyncio.gather(*calls)
    assert not [one for one in found if isinstance(one, SignalboxError)]
    assert len(cleaner.client_list()) <= before + 1


async def test_first_calls_at_once_load_the_library_once(own_server):
    with_threads = Engine.from_url(own_server.url)
    async with AsyncEngine.from_url(own_server.url) as engine:
        await asyncio.gather(*(engine.machines() for _ in range(10)), *(engine.publish(door()) for _ in range(20)))
        assert await engine.versions("door") == [1]
    stats = with_threads.client.info("commandstats")
    assert stats["cmdstat_function|load"]["calls"] == 1
    with_threads.client.close()


async def test_commands_that_wait_in_redis_do_not_hold_up_the_others(awaited):
    await awaited.publish(door())
    await awaited.create("door", "x")
    logs = awaited.emitted_logs()
    known = {place: end.last for place, end in (await logs.ends()).items()}
    waiting = asyncio.create_task(logs.find_new(known, wait=600.0))
    replicated = asyncio.create_task(awaited.fire("door", "x", "open", replicas=1))  # waits for a replica: none comes
    for _ in range(50):
        assert (await awaited.get("door", "x")).id == "x"
    waiting.cancel()
    assert (await replicated).state == "Open"
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_error_is_that_of_its_own_call(awaited):
    await awaited.publish(counter())
    await awaited.create("counter", "x")

    async def conflict(expected: int) -> None:
        with pytest.raises(Conflict) as caught:
            await awaited.fire("counter", "x", "add", expect=expected)
        assert caught.value.expected == expected

    await asyncio.gather(*(conflict(expected) for expected in range(100, 200)))


async def test_context_variables_are_those_of_the_task():
    request = contextvars.ContextVar("request", default="")
    seen: list[str] = []

    def look() -> None:
        seen.append(request.get())
        waiting.pause(0)
        seen.append(request.get())

    async def work(name: str) -> None:
        request.set(name)
        await waiting.run(look)

    await asyncio.gather(*(work(f"r{number}") for number in range(3)))
    assert Counter(seen) == {"r0": 2, "r1": 2, "r2": 2}
    assert request.get() == ""
