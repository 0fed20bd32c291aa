"""The store's tables, and its models attached."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.db import connection
from django.test import override_settings

from machines.engine import Engine
from machines.integrations.attached import Attachment, attach, detach, mirror, registry


@pytest.fixture(scope="package")
def store(django_db_setup: None, django_db_blocker) -> Iterator[None]:
    with override_settings(INSTALLED_APPS=[*django_settings.INSTALLED_APPS, "tests.integrations.attached.store"]):
        models = list(apps.get_app_config("store").get_models())
        with django_db_blocker.unblock(), connection.schema_editor() as editor:
            for model in models:
                editor.create_model(model)
        yield
        with django_db_blocker.unblock(), connection.schema_editor() as editor:
            for model in reversed(models):
                editor.delete_model(model)


@pytest.fixture
def mirrored(store: None, transactional_db: None, engine: Engine, monkeypatch) -> Iterator[Attachment]:
    """``Purchase.state``, attached."""
    from .store.models import Purchase

    monkeypatch.setattr(mirror, "_away_until", 0.0)
    yield attach(Purchase, "state")
    for one in registry.list_attached():
        detach(one)


@pytest.fixture
def events(engine: Engine, mirrored: Attachment) -> Callable[[object], list[str]]:
    """The events of a row's instance, the first one first."""

    def read(row) -> list[str]:
        return [step.event for step in reversed(engine.history(mirrored.machine, str(row.pk)))]

    return read
