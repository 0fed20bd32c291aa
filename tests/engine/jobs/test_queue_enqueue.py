"""Jobs that no instance waits for: how they come to a queue, and in which order they leave it."""

import pytest
from redis.exceptions import ResponseError

from machines.engine import BadInput, BadPayload, Engine, EngineFault, Enqueue, UnknownMachine
from tests.cases import for_each
from tests.engine.bells import Bells, wait_on_lists
from tests.engine.builders import NOW, door, machine, publish, started
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads
from tests.installation.processes import eventually

from .queueing import places


@pytest.fixture
def yard(engine):
    """A machine that feeds no queue itself."""
    publish(engine, door())
    return engine


def put(engine, *items, **facts):
    return engine.enqueue_many([{"machine": "door", "src": "work", "now": NOW} | facts | item for item in items])


def take(engine, count=10, now=NOW, queue="work"):
    return engine.take("door", queue, "w", count=count, now=now)


def test_a_bare_job_is_taken_and_completed(yard):
    job = yard.enqueue("door", "work", {"n": 1}, queue="bulk", now=NOW)
    assert (job.id, job.place, job.queue, job.src, job.instance, job.attempts) == (
        "0-1",
        "ready",
        "bulk",
        "work",
        "",
        3,
    )
    assert yard.queues("door")["bulk"]["ready"] == 1, "a queue is known by its first job"
    (taken,) = take(yard, queue="bulk")
    assert (taken.input, taken.data, taken.attempt, taken.invoke) == ({"n": 1}, {}, 1, "")
    assert yard.complete(taken, {"ok": True}) is None
    assert places(yard, "bulk", "door") == {}


def test_what_enqueue_answers_is_what_stands_there(yard):
    facts = {"priority": 7, "delay": 500, "unique": "u", "attempts": 9, "backoff": 20, "lease": 70, "timeout": 4000,
             "jitter": False, "stop": ("ValueError", "app.Gone")}  # fmt: skip
    job = yard.enqueue("door", "work", [1, None], now=NOW, **facts)
    assert job == yard.job("door", job.id)
    assert (job.priority, job.due, job.unique, job.timeout, job.stop) == (7, NOW + 500, "u", 4000, facts["stop"])
    assert yard.enqueue("door", "work", now=NOW) == yard.job("door", "0-2")


def test_the_higher_priority_goes_first_and_within_one_the_oldest(yard):
    jobs = put(yard, *({"priority": p, "input": n} for n, p in enumerate([5, 0, 9, 5, 9, 1])))
    assert [job.priority for job in jobs] == [5, 0, 9, 5, 9, 1]
    assert [job.input for job in take(yard)] == [2, 4, 0, 3, 5, 1]


def test_a_job_that_comes_back_goes_to_the_front_of_its_priority(yard):
    put(yard, {"input": 0, "priority": 6}, {"input": 1}, {"input": 2})
    first, second = take(yard, count=2)
    yard.hand_back(second, now=NOW)
    yard.hand_back(first, now=NOW)
    assert [job.input for job in take(yard)] == [0, 1, 2]


def test_a_delayed_job_waits_for_its_time(yard):
    put(yard, {"delay": 1000})
    assert places(yard, name="door") == {"0-1": "delayed"}
    assert take(yard, now=NOW + 999) == []
    (job,) = take(yard, now=NOW + 1000)
    assert (job.due, job.attempt) == (NOW + 1000, 1)


def test_delayed_jobs_ring_no_bell_until_they_are_due(yard):
    bell = yard.keys.partition("door").bell("work")
    wait_on_lists(yard, "door")
    bells = Bells(yard, "door")
    put(yard, {"delay": 1000}, {"delay": 1000})
    assert yard.client.llen(bell) == 0
    assert [message for message in bells.heard() if message.startswith("job")] == []
    yard.sweep("door", now=NOW + 1000)
    assert yard.client.llen(bell) == 2, "two workers may have work"
    put(yard, *[{}] * 50)
    assert yard.client.llen(bell) == 8
    assert [message for message in bells.heard() if message.startswith("job")] == ["job work"], (
        "those who hear it try until the queue is empty"
    )
    bells.close()


def test_a_unique_key_has_one_open_job(yard):
    first = yard.enqueue("door", "work", {"n": 1}, unique="serial:7", now=NOW)
    eventually(lambda: not yard.client.exists(yard.keys.partition("door", 0).pulse), "another pulse would be heard")
    with unchanged(yard):
        again = yard.enqueue("door", "work", {"n": 2}, unique="serial:7", now=NOW + 5)
    assert again == first
    assert yard.enqueue("door", "work", queue="other", unique="serial:7").id != first.id, "a key is of one queue"
    (taken,) = take(yard)
    assert yard.enqueue("door", "work", unique="serial:7").place == "leased"
    yard.complete(taken)
    assert yard.enqueue("door", "work", unique="serial:7").id != first.id


@pytest.mark.parametrize("end", ["complete", "bury", "withdraw", "purge"])
def test_a_unique_key_is_free_when_its_job_is_over_however(yard, end):
    first = yard.enqueue("door", "work", unique="u", now=NOW)
    if end == "purge":
        yard.purge("door", "work", place="ready", actor="a", reason="r")
    else:
        (job,) = take(yard)
        {
            "complete": lambda: yard.complete(job),
            "bury": lambda: yard.fail(job, "no", retry=False),
            "withdraw": lambda: yard.withdraw("door", job, actor="a", reason="r"),
        }[end]()
    assert yard.enqueue("door", "work", unique="u").id != first.id


def test_of_many_who_enqueue_one_key_all_get_one_job(yard):
    jobs = in_threads([lambda: yard.enqueue("door", "work", unique="u")] * 8)
    assert {job.id for job in jobs} == {"0-1"}
    assert len(take(yard)) == 1


def debounce(engine, number, now, **options):
    return engine.enqueue("door", "work", number, unique="u", debounce=5000, now=now, **options)


@pytest.mark.parametrize("group", [None, "acme"])
def test_the_last_of_debounced_calls_wins(yard, group):
    yard.limit("door", "work", group="acme", rate="1/h burst 1")
    first, second = debounce(yard, 1, NOW, group=group), debounce(yard, 2, NOW + 4999, group=group)
    assert (second.id, second.input, second.place, second.due) == (first.id, 2, "delayed", NOW + 9999)
    assert take(yard, now=NOW + 9998) == []
    yard.pause("door", "work", actor="a", reason="r")
    assert take(yard, now=NOW + 9999) == []
    assert yard.sweep("door", now=NOW + 9999) == 1 or places(yard, name="door") == {first.id: "ready"}
    third = debounce(yard, 3, NOW + 20_000, group=group)
    assert (third.id, places(yard, name="door")) == (first.id, {first.id: "delayed"}), "no worker had taken it"
    yard.resume_queue("door", "work", actor="a", reason="r")
    (job,) = take(yard, now=NOW + 25_000)
    assert (job.id, job.input, job.attempt) == (first.id, 3, 1)


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_beside_a_job_that_was_taken_a_debounced_call_adds_one(yard, end):
    first = debounce(yard, 1, NOW)
    (job,) = take(yard, now=NOW + 5000)
    second = debounce(yard, 2, NOW + 5001)
    assert (first.id, second.id) == (job.id, "0-2")
    yard.complete(job, now=NOW + 5002) if end == "complete" else yard.fail(job, "no", now=NOW + 5002)
    assert debounce(yard, 3, NOW + 5003).id == yard.enqueue("door", "work", unique="u").id == "0-2"
    taken = take(yard, now=NOW + 60_000)
    assert sorted(job.input for job in taken) == ([3] if end == "complete" else [1, 3])


def test_debounced_calls_at_once_leave_one_job(yard):
    jobs = in_threads([lambda: debounce(yard, 1, NOW)] * 8)
    assert {job.id for job in jobs} == {"0-1"}
    assert places(yard, name="door") == {"0-1": "delayed"}


def test_a_debounced_job_takes_the_options_of_the_last_call(yard):
    first = debounce(yard, 1, NOW, priority=9, group="acme", weight=2, attempts=9, lease=70, stop=("KeyError",))
    last = debounce(yard, 2, NOW + 1, priority=2, group="bolt", timeout=800, backoff=7, jitter=False)
    assert last == yard.job("door", first.id)
    assert (last.priority, last.group, last.weight, last.timeout, last.backoff, last.jitter) == (
        2,
        "bolt",
        1,
        800,
        7,
        False,
    )
    assert (last.attempts, last.lease, last.stop, last.created) == (3, 30_000, (), NOW)


@pytest.mark.parametrize("group", [None, "free", "held", "released"])
def test_a_replacement_is_undone_with_its_call(yard, group):
    yard.limit("door", "work", group="held", rate="1/h burst 1")
    yard.limit("door", "work", group="released", concurrency=2)
    debounce(yard, 1, NOW, group=group)
    many = [{"input": n, "unique": f"ready{n}", "group": group, "weight": 3} for n in range(4)]
    put(yard, *many)
    assert len(take(yard, count=1)) == 1
    yard.client.set(yard.keys.partition("door").ready("broken"), "no sorted set")
    keys = ("u", "ready2", "ready1", "ready3", "ready2")
    with unchanged(yard):
        jobs = put(yard, *({"input": 9, "unique": key, "debounce": 9} for key in keys), {"queue": "broken"})
    assert all(isinstance(job, EngineFault) for job in jobs)


def test_a_debounced_job_is_of_the_trace_of_the_last_call(yard):
    first, second = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")
    partition = yard.keys.partition("door")
    words = ("work", "work", "", 5, "debounce 5000", "u", 1, 0, 9000, 0, "1", "")

    def enqueue(*more, also=()):
        yard.client.fcall("sb_enqueue", 1, partition.root, NOW, *words, *also, *more)
        return yard.client.hget(partition.job("0-1"), "traceparent")

    assert [enqueue("", first), enqueue("", second), enqueue(), enqueue("", first)] == [first, second, None, first]
    yard.client.set(partition.ready("broken"), "no sorted set")
    broken = ("work", "broken", "", 5, 0, "", 1, 0, 9000, 0, "1", "")
    for last in [("", second), ()]:
        with pytest.raises(ResponseError):
            enqueue(*last, also=broken)
        assert yard.client.hget(partition.job("0-1"), "traceparent") == first


def test_debounce_needs_a_key_and_no_delay(yard):
    for facts in ({}, {"unique": "u", "delay": 1}, {"unique": "u", "debounce": -1}):
        with pytest.raises(BadInput, match="debounce"):
            yard.enqueue("door", "work", **({"debounce": 5} | facts))


def test_a_batch_is_put_in_one_round_trip_with_an_answer_each(yard):
    jobs = put(yard, {"input": 1}, {"src": "no name"}, {"priority": 10}, {"input": 2, "unique": "u"}, {"unique": "u"})
    assert [getattr(job, "id", None) or type(job) for job in jobs] == ["0-1", BadInput, BadInput, "0-2", "0-2"]
    assert jobs[4].input == 2
    many = yard.enqueue_many([Enqueue("door", "work", number) for number in range(1234)])
    assert [job.id for job in many] == [f"0-{number}" for number in range(3, 1237)]
    assert yard.queues("door")["work"]["ready"] == 1236


@for_each(
    "facts",
    [
        {"src": ""},
        {"src": "a b"},
        {"queue": "a:b"},
        {"priority": -1},
        {"priority": 5.0},
        {"delay": -1},
        {"delay": 10**12},
        {"unique": ""},
        {"unique": "é" * 101},
        {"unique": 7},
        {"attempts": 0},
        {"attempts": 101},
        {"backoff": 86_400_001},
        {"lease": 0},
        {"timeout": -1},
        {"stop": "ValueError"},
        {"stop": ["a b"]},
        {"stop": ["E"] * 21},
        {"now": -1},
        {"instance_key": ""},
        {"colour": "red"},
    ],
)
def test_what_makes_no_sense_is_bad_input_and_adds_nothing(yard, facts):
    with unchanged(yard):
        (answer,) = put(yard, facts)
    assert isinstance(answer, BadInput)
    assert str(answer)


def test_an_input_is_json_of_at_most_64_kib(yard):
    with unchanged(yard):
        for value in [{1, 2}, float("nan"), {"a": "x" * 65_536}, "\x00"]:
            with pytest.raises(BadPayload):
                yard.enqueue("door", "work", value)
    assert yard.enqueue("door", "work", "x" * 65_000).input == "x" * 65_000


def test_a_machine_has_to_be_there(yard):
    with pytest.raises(UnknownMachine):
        yard.enqueue("nothing", "work")


@pytest.mark.parametrize("broken", ["ready", "delayed"])
def test_where_one_job_of_a_batch_cannot_be_written_none_is(yard, broken):
    put(yard, {"unique": "u"})
    (job,) = take(yard)
    yard.complete(job)
    partition = yard.keys.partition("door")
    key = getattr(partition, broken)("bad")
    yard.client.set(key, "foreign")
    with unchanged(yard):
        answers = put(yard, {}, {"unique": "u"}, {"queue": "bad", "delay": 0 if broken == "ready" else 5}, {})
    assert all(isinstance(answer, EngineFault) for answer in answers)


@pytest.fixture
def spread(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    publish(engine, door())
    yield engine
    engine.client.close()


def test_on_several_partitions_a_key_keeps_to_its_own(spread):
    put(spread, *[{"input": n} for n in range(60)])
    assert {job.root for job in take(spread, count=100)} == {
        p.root for p in map(spread.keys.partition, ["door"] * 4, range(4))
    }
    roots = {spread.enqueue("door", "work", unique="u").root for _ in range(8)}
    assert len(roots) == 1
    assert spread.queues("door")["work"]["ready"] == 1
    near = {spread.enqueue("door", "work", instance_key="x").root for _ in range(8)}
    assert near == {spread._catalog.partition("door", "x").root}


def test_the_action_takes_the_same_options(engine):
    retry = {"attempts": 8, "backoff": "7s", "jitter": False, "stop": "KeyError"}
    enqueue = {"src": "mail", "input": {"n": "n"}, "priority": "n", "delay": "2s", "unique": "'k'", "timeout": "1m"}
    enqueue |= {"lease": "5s", "retry": retry}
    started(engine, machine("m", {"A": {"on": {"go": {"actions": {"enqueue": enqueue}}}}}, context={"n": 8}))
    engine.fire("m", "x", "go", now=NOW)
    engine.fire("m", "x", "go", now=NOW)
    (job,) = engine.jobs("m", "mail", place="delayed")
    assert (job.input, job.priority, job.due, job.unique, job.timeout) == ({"n": 8}, 8, NOW + 2000, "k", 60_000)
    assert (job.lease, job.attempts, job.backoff, job.jitter, job.stop) == (5000, 8, 7000, False, ("KeyError",))
    assert (job.instance, job.invoke) == ("x", "")


@pytest.mark.parametrize("value", ["10", "-1", "0.5", "'high'", "None"])
def test_a_priority_that_is_none_refuses_the_step(engine, value):
    go = {"actions": {"enqueue": {"src": "mail", "priority": f"{value} if n else 5"}}}
    started(engine, machine("m", {"A": {"on": {"go": go}}}, context={"n": 1}))
    with unchanged(engine), pytest.raises(Exception, match="a priority is a whole number from 0 to 9"):
        engine.fire("m", "x", "go")


def test_an_idempotency_key_adds_one_job_also_once_that_has_ended(yard):
    first = yard.enqueue("door", "work", {"n": 1}, key="nightly:1", now=NOW)
    assert yard.enqueue("door", "work", {"n": 2}, key="nightly:1", now=NOW) == first
    (taken,) = take(yard)
    yard.complete(taken)
    assert yard.enqueue("door", "work", {"n": 3}, key="nightly:1", now=NOW).id == first.id
    assert take(yard) == []
    one, two, again = put(yard, {"key": "a"}, {"key": "b"}, {"key": "a"})
    assert (one.id == again.id, one.id == two.id) == (True, False)
    assert len(take(yard)) == 2
    with pytest.raises(BadInput, match="idempotency key"):
        yard.enqueue("door", "work", key="k" * 201)


def test_a_job_whose_key_cannot_be_stored_is_not_added(yard):
    root = yard.keys.partition("door").root
    yard.client.rpush(f"{root}:once:k", "of another program")
    with unchanged(yard), pytest.raises(EngineFault):
        yard.enqueue("door", "work", key="k", now=NOW)
