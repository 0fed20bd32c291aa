"""The groups of a queue: their figures, and the limits and pauses that operators set."""

import pytest

from machines.models import AuditEntry
from tests.engine.builders import NOW, door, publish
from tests.pages.reading import read

GROUPS = "/queues/door/work/groups/"
MANY = 20_000
LIMIT = {"concurrency": "2", "rate": "5/s burst 20", "reason": "their own wish", "next": f"{GROUPS}?order=age"}


@pytest.fixture
def yard(engine):
    publish(engine, door())
    for group, count in ((None, 1), ("acme", 3), ("<b>", 2)):
        put(engine, group, count)
    return engine


def put(engine, group, count):
    engine.enqueue_many({"machine": "door", "src": "work", "now": NOW, "group": group} for _ in range(count))


def rows(page):
    return [[cell.text for cell in row.all("td")[:6]] for row in page.one("table").all("tr")[1:]]


def names(page):
    return [row.one("th").text for row in list_rows(page)]


def list_rows(page):
    return page.one("table").all("tr")[1:]


def test_the_deepest_group_comes_first_with_its_figures_and_limits(as_, yard):
    yard.limit("door", "work", group="acme", concurrency=2, rate="5/s burst 20")
    page = read(as_("viewer").get(GROUPS))
    assert names(page) == ["acme", "<b>", "jobs without a group"]
    assert rows(page)[0][0] == "3"
    assert rows(page)[0][5] == "2 at a time and 5/s burst 20"
    assert "3 groups, all ready jobs read." in page.one("main").text
    assert not page.all("form", class_="act"), "a viewer changes nothing"


def test_a_name_leads_to_the_jobs_of_its_group(as_, yard):
    client = as_("viewer")
    links = {row.one("th").text: row.one("th").one("a")["href"] for row in list_rows(read(client.get(GROUPS)))[:2]}
    assert links["acme"] == "/queues/door/work/?place=ready&group=acme"
    assert "2 found in 6 of 6 jobs" in read(client.get(links["<b>"])).one("main").text
    yard.take("door", "work", "w", count=6)
    links = [link["href"] for row in list_rows(read(client.get(GROUPS))) for link in row.one("th").all("a")]
    assert ["place=leased" in link for link in links] == [True, True]


def test_a_queue_without_jobs_says_where_groups_come_from(as_, yard):
    yard.purge("door", "work", place="ready", actor="x", reason="none")
    assert "No group has jobs here" in read(as_("viewer").get(GROUPS)).one("main").text


def test_of_very_many_groups_a_page_shows_fifty(as_, yard):
    yard.enqueue_many({"machine": "door", "src": "work", "group": f"g{number:03}"} for number in range(100))
    client = as_("viewer")
    page = read(client.get(f"{GROUPS}?order=rate"))
    assert (len(names(page)), names(page)[0]) == (50, "g000")
    assert len(names(read(client.get(f"{GROUPS}?page=3")))) == 3


def test_an_operator_limits_pauses_and_resumes_a_group(as_, yard):
    client = as_("supervisor")
    answer = client.post("/queues/door/work/limit/", LIMIT | {"group": "acme"})
    assert (answer.status_code, answer.url) == (302, LIMIT["next"])
    client.post("/queues/door/work/pause/", {"group": "acme", "reason": "no money", "next": GROUPS})
    page = read(client.get(GROUPS))
    assert "paused" in rows(page)[0][5]
    assert yard.stats("door")["work"].paused is None, "the queue itself goes on"
    assert len(yard.take("door", "work", "w", count=10)) == 3
    client.post("/queues/door/work/resume/", {"group": "acme", "reason": "paid", "next": GROUPS})
    assert len(yard.take("door", "work", "w", count=10)) == 2
    found = AuditEntry.objects.order_by("pk").values_list("action", "detail")
    assert [(action, detail["group"]) for action, detail in found if action.startswith("queue.")] == [
        ("queue.limit", "acme"), ("queue.pause", "acme"), ("queue.resume", "acme"),
    ]  # fmt: skip


def test_a_wrong_rate_of_a_group_is_shown_and_kept_for_the_next_try(as_, yard):
    answer = as_("supervisor").post("/queues/door/work/limit/", LIMIT | {"group": "acme", "rate": "often"})
    assert answer.status_code == 400
    form = read(answer).one("section", id="turned").one("form")
    sent = {field["name"]: field["value"] for field in form.all("input") if "value" in field.attributes}
    assert (sent["group"], sent["rate"], sent["next"]) == ("acme", "often", LIMIT["next"])


@pytest.mark.parametrize("action", ["limit", "pause", "resume"])
def test_a_group_without_a_name_is_not_the_whole_queue(as_, yard, action):
    yard.limit("door", "work", concurrency=7)
    if action == "resume":
        yard.pause("door", "work", actor="ann", reason="a test")
    before = yard.stats("door")["work"]
    answer = as_("supervisor").post(f"/queues/door/work/{action}/", LIMIT | {"group": ""})
    after = yard.stats("door")["work"]
    assert (after.concurrency, after.rate, after.paused) == (before.concurrency, before.rate, before.paused)
    assert answer.status_code == 400
    if action == "limit":
        form = read(answer).one("section", id="turned").one("form")
        assert form.one("input", name="group")["type"] == "text"


def test_a_group_is_limited_before_it_has_jobs(as_, yard):
    client = as_("supervisor")
    asked = [form.all("input", name="group") for form in read(client.get(GROUPS)).all("form", class_="act")]
    assert [field["type"] for (field,) in asked].count("text") == 1
    client.post("/queues/door/work/limit/", LIMIT | {"group": "new"})
    assert "new" in names(read(client.get(GROUPS)))


@pytest.mark.parametrize("limits", [{}, {"groups": {"concurrency": 1}}])
def test_very_many_groups_are_looked_at_in_part_and_leave_nothing(as_, engine, limits):
    publish(engine, door(queues={"work": limits} if limits else {}))
    partition, client = engine.keys.partition("door"), as_("viewer")
    for start in range(0, MANY, 500):
        tenants = [f"tenant-{number:07}" for number in range(start, start + 500)]
        engine.enqueue_many({"machine": "door", "src": "work", "group": tenant} for tenant in tenants)
    found = client.get("/api/v1/machines/door/queues/work/groups?order=age").json()
    assert (found["ready"], len(found["items"])) == (MANY, 50)
    assert found["looked"] < MANY / 1.5
    page = read(client.get(GROUPS))
    assert len(set(names(page))) == 50
    assert f"of {MANY:,} ready jobs" in page.one("main").text
    taken = set()
    while (jobs := engine.take("door", "work", "w", count=500)) or jobs.wait is not None:
        taken.update(job.group for job in jobs)
        engine.complete_many([(job, None) for job in jobs])
    assert len(taken) == MANY
    assert engine.client.exists(*(key("work") for key in (partition.turns, partition.members, partition.releases))) == 0
