"""Database connections that broke while nobody looked: the next job must not fail for them."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection

from tests.installation.processes import eventually
from tests.worker.builders import Running, registry_of


def break_it():
    """As a database that was restarted leaves it: gone, and Django has seen an error."""
    connection.ensure_connection()
    connection.connection.close()
    connection.errors_occurred = True


def count():
    return get_user_model().objects.count()


def breaks(job):
    break_it()
    raise ConnectionError("the database went away")


async def breaks_async(job):
    await sync_to_async(break_it)()
    raise ConnectionError("the database went away")


def counts(job):
    return {"users": count()}


async def counts_async(job):
    return {"users": await sync_to_async(count)()}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("breaking", "counting"), [(breaks, counts), (breaks_async, counts_async)])
def test_a_connection_that_broke_in_one_job_is_not_left_to_the_next(engine, errand, breaking, counting):
    errand("e1")

    def first(job):
        return breaking(job) if job.attempt == 1 else counting(job)

    async def first_async(job):
        return await first(job)

    handler = first_async if breaking is breaks_async else first
    with Running(engine, registry_of(run=handler), concurrency=1):
        eventually(lambda: engine.get("errand", "e1").state != "doing", "it has ended")
    ended = engine.get("errand", "e1")
    assert (ended.state, ended.data["answer"]) == ("done", {"users": 0})
