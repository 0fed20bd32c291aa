"""Staff with the permissions a test names, and a published machine with an instance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from machines.catalog.publishing import publish
from machines.engine import Engine
from machines.models import Machine
from tests.catalog.samples import example

ID = 'ATV-1/2:"NBC" {🚂} <b>?&id=x'
"""An instance id with everything in it that URLs and HTML care about."""


@pytest.fixture
def staff(prefix: str, db: None) -> Callable[..., Client]:
    """``staff("view", "fire")`` is a logged-in client with these rights."""

    def log_in(*rights: str, name: str = "sam") -> Client:
        user = get_user_model().objects.create_user(name, is_staff=True)
        codenames = [f"{right}_machine" for right in rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        client = Client(enforce_csrf_checks=False)
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def machine(engine: Engine, db: None) -> Machine:
    return publish(example("activation")).machine


@pytest.fixture
def instance(engine: Engine, machine: Machine) -> str:
    """Waiting for the token T0KEN, at version 2."""
    engine.create("activation", ID)
    engine.fire("activation", ID, "activate", {"token": "T0KEN"})
    return ID
