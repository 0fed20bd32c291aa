"""``SIGNALBOX_RETAIN``: its words, and what is said of those that are none."""

from __future__ import annotations

import pytest

from machines.conf.retention_policy import BadPolicy, Policy, TableBound, is_policy, parse_policy
from machines.engine.definitions.reading.machine_settings import Retention
from tests.cases import for_each

DAY = 86_400_000


def test_no_words_bound_nothing():
    assert parse_policy("") == Policy()
    assert parse_policy("").table("audit") == TableBound()


def test_words_bound_machines_and_tables_by_age_and_number():
    found = parse_policy("finished=30d, most=1000,dead=90 days,log=7d,audit=730d,audit_most=5000,webhooks=14d")
    assert found.machines == Retention(finished=30 * DAY, most=1000, dead=90 * DAY, log=7 * DAY)
    assert found.table("audit") == TableBound(730 * DAY, 5000)
    assert found.table("webhooks") == TableBound(14 * DAY)


@for_each(
    "text",
    [
        "30d",
        "finshed=30d",
        "finished",
        "finished=",
        "finished=soon",
        "most=many",
        "most=-1",
        "audit_most=30d",
        "finished_most=3",
        "most=99999999999",
    ],
)
def test_a_word_that_is_none_is_named(text):
    with pytest.raises(BadPolicy, match=text.partition("=")[0]):
        parse_policy(f"log=7d,{text}")
    assert not is_policy(text)
