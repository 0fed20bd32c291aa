from __future__ import annotations

import pytest

from dashboard.live.topics import RIGHTS, BadTopic, Topic, parse
from tests.cases import for_each
from tests.docs.live_protocol import FORMS


@for_each(
    "text, topic",
    [
        ("overview", Topic("overview")),
        ("queues", Topic("queues")),
        ("workers", Topic("workers")),
        ("overview:lamp,order", Topic("overview", name="lamp,order")),
        ("queues:lamp", Topic("queues", name="lamp")),
        ("machine:activation", Topic("machine", "activation")),
        ("queue:new_device/todo", Topic("queue", "new_device", "todo")),
        ("job:new_device/0-17", Topic("job", "new_device", "0-17")),
        ("instance:activation/ATV-123:NBCSports", Topic("instance", "activation", "ATV-123:NBCSports")),
        ('instance:activation/a/b {c} "d" 🚂', Topic("instance", "activation", 'a/b {c} "d" 🚂')),
    ],
)
def test_a_topic_is_read_and_written_the_same(text: str, topic: Topic) -> None:
    assert parse(text) == topic
    assert str(topic) == text


@for_each(
    "text",
    [
        None,
        7,
        ["overview"],
        {"topic": "overview"},
        "",
        "overvie",
        "overview:",
        "overview:9lives",
        "overview:a,",
        "queues:a,b c",
        "queues:" + ",".join(f"m{number}" for number in range(101)),
        "workers:a",
        "workers/1",
        "machine",
        "machine:",
        "machine:9lives",
        "machine:a b",
        "machine:a/b",
        "machine:a\n",
        "machine:a*",
        "machine:" + "a" * 65,
        "queue:a",
        "queue:a/",
        "queue:a/b c",
        "queue:a/b/c",
        "job:a",
        "job:a/",
        "job:a/17",
        "job:a/0-",
        "job:a/0-1x",
        "job:a/٣-1",
        "job:a/0-1\n",
        "instance:a",
        "instance:a/",
        "instance:a/   ",
        "instance:a/x\x00y",
        "instance:a/x\ny",
        "instance:a/\ud800",
        "instance:a/" + "é" * 101,
        "instance:/x",
        "nothing:a",
        "Machine:a",
    ],
)
def test_what_is_no_topic_is_refused_with_a_reason(text: object) -> None:
    with pytest.raises(BadTopic) as caught:
        parse(text)
    assert str(caught.value)


def test_the_longest_id_fits() -> None:
    assert parse("instance:a/" + "é" * 100).name == "é" * 100


def test_each_kind_of_topic_names_a_right_and_is_described() -> None:
    assert list(dict.fromkeys(kind for kind, _, _ in FORMS)) == list(RIGHTS)
