"""The shop's tables, its machines on the server of the run, and what a worker would do, one pass at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.db import connection
from django.test import override_settings

from machines.engine import Engine

from . import machines


@pytest.fixture(autouse=True)
def _shop_is_installed(request: pytest.FixtureRequest) -> None:
    """For tests with a database; those that start processes have a database of their own."""
    if request.node.get_closest_marker("django_db"):
        request.getfixturevalue("shop")


@pytest.fixture(scope="package")
def shop(django_db_setup: None, django_db_blocker) -> Iterator[None]:
    """The app is installed while the tests of this folder run."""
    with override_settings(INSTALLED_APPS=[*django_settings.INSTALLED_APPS, "tests.integrations.binding.shop"]):
        models = list(apps.get_app_config("shop").get_models())
        with django_db_blocker.unblock(), connection.schema_editor() as editor:
            for model in models:
                editor.create_model(model)
        yield
        with django_db_blocker.unblock(), connection.schema_editor() as editor:
            for model in reversed(models):
                editor.delete_model(model)


@pytest.fixture
def machines_there(engine: Engine) -> Engine:
    """The engine, with the shop's machines published."""
    machines.publish(engine)
    return engine


class Reading:
    """A worker's projection, a call of which reads the logs until nothing is left."""

    def __init__(self, engine: Engine) -> None:
        from machines.integrations.binding.projection import Projection

        self.worker = Projection(engine, wait=0.0)

    def __call__(self) -> None:
        while self.worker.look():
            pass

    def end(self) -> None:
        """Let another worker have the fields."""
        for held in self.worker._locks.values():
            held.release()

    def look_again(self) -> None:
        """Look for logs as after the usual pause."""
        for reader in self.worker._readers.values():
            reader.forget()


@pytest.fixture
def project(machines_there: Engine) -> Reading:
    reading = Reading(machines_there)
    reading()  # from now on steps are logged
    return reading


@pytest.fixture
def deliver() -> Callable[[], None]:
    """Send what is due in the outbox, as a worker does."""
    from machines.integrations.binding import delivery

    def send() -> None:
        while delivery.send_due("default"):
            pass

    return send


@pytest.fixture(autouse=True)
def _redis_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test leaves sending to workers because Redis was away in the test before it."""
    from machines.integrations.binding import delivery

    monkeypatch.setattr(delivery, "_away_until", 0.0)
