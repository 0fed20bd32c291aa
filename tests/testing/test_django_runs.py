"""Runs of a Django project's tests without the fixture: they never reach the instances of the real rows."""

from __future__ import annotations

import subprocess
import sys

import pytest

from machines.conf import conf, testing_keys
from machines.connections import get_engine, get_prefix
from machines.engine import Engine
from tests.configuration import configure

from .projects import ROOT, run, write

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.redis

SETTINGS = """
SECRET_KEY = "of-a-test"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "guardian", "machines", "shop"]
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend", "guardian.backends.ObjectPermissionBackend"]
ANONYMOUS_USER_NAME = None
MIGRATION_MODULES = dict.fromkeys(("contenttypes", "auth", "guardian", "machines"))  # tables are made at once
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}}}
SIGNALBOX = {{"REDIS_URL": {url!r}, "PREFIX": {prefix!r}}}
"""
MANAGE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
"""
ORDER = "id: order\ninitial: New\nstates:\n  New: {on: {pay: Paid}, after: {30d: Old}}\n  Paid: {}\n  Old: {}\n"
MODELS = """
from django.db import models
from machines.fields import MachineField

class Order(models.Model):
    status = MachineField("order", on_delete="delete")
"""
WITHOUT_KIT = """
from django.core.management import call_command
from django.test import TestCase, TransactionTestCase
from machines.connections import get_engine
from shop.models import Order

class Fires(TransactionTestCase):
    def test_fire(self):
        call_command("machine", "sync", verbosity=0)
        self.assertEqual(sum(get_engine().counts("order").values()), 0)
        order = Order.objects.create(id=1)
        order.status.fire("pay")
        self.assertEqual(get_engine().get("order", "1").state, "Paid")
        order.delete()

class Captures(TestCase):
    @classmethod
    def setUpTestData(cls):
        call_command("machine", "sync", verbosity=0)

    def test_delete(self):
        with self.captureOnCommitCallbacks(execute=True):
            order = Order.objects.create(id=1)
        with self.captureOnCommitCallbacks(execute=True):
            order.delete()
        self.assertEqual(sum(get_engine().counts("order").values()), 0)
"""
WITH_KIT = """
from django.db import transaction
from django.test import TestCase, TransactionTestCase
from machines.testing import SignalboxMixin
from shop.models import Order

class Rows(SignalboxMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.order = Order.objects.create(id=1)

    def test_at_once(self):
        self.assertEqual(self.order.status.fire("pay").state, "Paid")
        self.assertEqual(self.order.status, "Paid")
        self.signalbox.assert_state("order", "1", "Paid")

    def test_after_the_transaction_of_the_code(self):
        called = []
        with transaction.atomic():
            transaction.on_commit(lambda: called.append(1))
            other = Order.objects.create(id=2)
            with transaction.atomic():
                pending = other.status.fire("pay")
            self.assertTrue(pending.waits)
            with self.assertRaisesRegex(AssertionError, "2 entries wait in the outbox; call signalbox.update_rows()"):
                self.signalbox.assert_state("order", "2", "Paid")
            with self.assertRaises(Exception) as raised:
                self.signalbox.fire("order", "2", "pay")
            self.assertIn("2 entries wait in the outbox; call signalbox.update_rows()", raised.exception.__notes__)
        self.assertEqual(other.status, "Paid")
        self.assertEqual(Order.objects.get(status="Paid"), other)
        self.assertEqual(called, [])  # other hooks wait for a commit, as Django has it

    def test_not_after_a_rollback(self):
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            self.order.status.fire("pay")
            1 / 0
        self.signalbox.assert_state("order", "1", "New")

    def test_old(self):
        self.signalbox.advance("30d")
        self.signalbox.update_rows()
        self.order.refresh_from_db()
        self.assertEqual(self.order.status, "Old")

    def test_errors(self):
        with self.assertRaisesRegex(Exception, "revision 1, not 9"):
            self.order.status.fire("pay", expect=9)
        with transaction.atomic(savepoint=False):
            self.order.status.fire("pay", expect=9)
        with self.assertRaisesRegex(Exception, "revision 1, not 9"):
            self.signalbox.update_rows(reraise=True)
        self.assertIn("outbox: fire pay failed: ", self.signalbox.describe("order", "1"))

class Commits(SignalboxMixin, TransactionTestCase):
    def test_fire(self):
        order = Order.objects.create(id=1)
        order.status.fire("pay")
        self.signalbox.assert_state("order", "1", "Paid")
"""


@pytest.fixture
def live(pytester, redis_url, prefix):
    """A project whose installation has an order 1; gives a check that nothing of it changed and nothing was left."""
    files = {"settings.py": SETTINGS.format(url=redis_url, prefix=prefix), "manage.py": MANAGE, "shop/__init__.py": ""}
    write(pytester.path, {**files, "shop/models.py": MODELS, "shop/statemachines/order.yaml": ORDER})
    engine = Engine.from_url(redis_url, prefix=prefix)
    engine.publish({"id": "order", "initial": "Live", "states": {"Live": {"on": {"pay": "Moved"}}, "Moved": {}}})
    engine.create("order", "1")
    before = list_keys(engine)

    def check() -> None:
        assert engine.get("order", "1").state == "Live"
        assert list_keys(engine) == before

    yield check
    engine.client.close()


def list_keys(engine: Engine) -> list[str]:
    """List the keys of the installation and of its tests, but for those that expire within seconds."""
    keys = engine.client.scan_iter(match=f"{engine.keys.prefix[:-1]}*", count=10_000)
    return sorted(key for key in keys if not key.endswith(":pulse"))


def manage(pytester, *args: str) -> None:
    command = [sys.executable, "manage.py", "test", *args]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        command, cwd=pytester.path, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "signalbox.W042" not in done.stderr
    assert "\nOK" in done.stderr


PLAIN = """
import pytest
from shop.models import Order

@pytest.mark.django_db
def test_plain():
    order = Order.objects.create()
    order.status.fire("pay")
    assert order.status == "Paid"

@pytest.mark.django_db
def test_with_the_fixture(signalbox):
    order = Order.objects.create()
    order.status.fire("pay")
    assert order.status == "Paid"

@pytest.mark.django_db(transaction=True)
def test_other(signalbox):
    order = Order.objects.create()
    assert order.status == "Paid"
"""


@pytest.mark.faults
def test_a_plain_test_says_what_its_row_waits_for_and_the_fixture_takes_it_at_once(pytester, monkeypatch, live):
    write(pytester.path, {"test_plain.py": PLAIN, "pytest.ini": "[pytest]\nDJANGO_SETTINGS_MODULE = settings\n"})
    done = run(pytester, monkeypatch, "test_plain.py")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines([
        "*AssertionError: assert '' == 'Paid'*",
        "*the outbox has: create, fire pay. It is sent after the commit, and this test runs in a transaction*",
        "*use the fixture `signalbox`, which sends at once, or mark the test with django_db(transaction=True)*",
    ])  # fmt: skip
    said = [line for line in done.outlines if line.startswith("E ") and "the outbox has" in line]
    assert len(said) == 1, "the test whose transaction is committed waits for nothing"
    live()


@pytest.mark.faults
@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_tests_of_django_have_keys_of_their_own_and_remove_them(pytester, live, processes):
    """Also where the kit is used in classes of tests."""
    write(pytester.path, {"shop/tests.py": WITHOUT_KIT, "shop/test_kit.py": WITH_KIT})
    manage(pytester, f"--parallel={processes}")
    live()


@pytest.mark.faults
def test_pytest_without_the_fixture_has_keys_of_its_own(pytester, monkeypatch, live):
    write(pytester.path, {"shop/tests.py": WITHOUT_KIT, "pytest.ini": "[pytest]\nDJANGO_SETTINGS_MODULE = settings\n"})
    run(pytester, monkeypatch, "-n", "2", "shop/tests.py").assert_outcomes(passed=2)
    live()


def test_a_project_may_share_the_prefix(settings, prefix):
    assert testing_keys.is_testing()
    assert get_prefix() == prefix
    configure(settings, TEST_PREFIX="own")
    assert get_prefix().startswith(f"{prefix[:-1]}-test-")
    assert get_engine().keys.prefix == get_prefix() != conf.PREFIX


def test_the_prefix_of_a_test_fits_the_rule(prefix):
    from machines.conf.table import is_prefix

    assert is_prefix(testing_keys.own_prefix("unix:///nonexistent/a", "x" * 40 + ":"))
