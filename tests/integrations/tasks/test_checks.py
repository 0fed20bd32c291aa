"""What ``manage.py check`` says about ``TASKS``."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.core.checks import run_checks

from machines.integrations.tasks import checks
from machines.integrations.tasks.framework import PACKAGE
from tests.integrations.tasks.settings import FRAMEWORK

BACKEND = "machines.tasks.SignalboxBackend"
framework_check = import_module(f"{PACKAGE}.checks").check_tasks


def list_findings(settings, **entry):
    settings.TASKS = {"default": {"BACKEND": BACKEND} | entry}
    return [(found.id, found.msg) for found in checks.check_tasks(None)]


@pytest.fixture
def installed(settings):
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, *FRAMEWORK]


def test_nothing_is_wrong(settings, installed):
    assert list_findings(settings) == []
    assert list(framework_check()) == []


def test_no_tasks_at_all(settings):
    settings.TASKS = {}
    assert checks.check_tasks(None) == []
    settings.TASKS = {"default": {"BACKEND": f"{PACKAGE}.backends.dummy.DummyBackend"}}
    assert checks.check_tasks(None) == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"QUEUES": ["mail", "no queue"]}, "TASKS['default']: the queue 'no queue'"),
        ({"OPTIONS": {"retries": 3}}, "OPTIONS has no retries; it has attempts, backoff"),
        ({"OPTIONS": {"attempts": 0}}, "attempts is a whole number from 1 to 100, not 0"),
        ({"OPTIONS": {"stop": "ValueError"}}, "stop is a list of at most"),
        ({"OPTIONS": {"jitter": 1}}, "jitter is True or False"),
        ({"OPTIONS": {"on_commit": "default"}}, "on_commit is True or False"),
        ({"OPTIONS": {"group": "a tenant"}}, "group is the name of an argument"),
        ({"OPTIONS": {"unique": 7}}, "unique is the name of an argument"),
        ({"OPTIONS": {"debounce": 5000}}, "debounce needs a unique key"),
        ({"OPTIONS": {"weight": 0}}, "weight is a number from 0.1 to 10, not 0"),
        ({"OPTIONS": {"modules": "shop.mail"}}, "modules is a list of names"),
        ({"OPTIONS": {"modules": ["shop.mail"]}}, "there is no module 'shop.mail'"),
        ({"OPTIONS": [1]}, "OPTIONS is a dict, not list"),
    ],
)
def test_an_entry_that_does_not_fit(settings, installed, entry, said):
    assert list_findings(settings, **entry) == []  # the framework asks its backends itself
    (found,) = framework_check()
    assert found.id == "signalbox.E047"
    assert said in found.msg


@pytest.mark.skipif(not FRAMEWORK, reason="the framework is Django's own: there is no app to install")
def test_the_app_of_the_backport_is_missing(settings):
    (warning, error) = list_findings(settings, QUEUES=["1 2"])
    assert warning[0] == "signalbox.W048"
    assert "'1 2'" in error[1]
    assert "signalbox.W048" in {found.id for found in run_checks()}


def test_the_package_is_missing(settings, monkeypatch):
    monkeypatch.setattr(checks, "has_framework", lambda: False)
    ((code, said),) = list_findings(settings)
    assert code == "signalbox.E047"
    assert "neither django.tasks nor django-tasks is installed" in said
