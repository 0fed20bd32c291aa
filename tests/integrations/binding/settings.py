"""Settings of real processes in these tests: the project's, and the shop."""

from dashboard.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.integrations.binding.shop"]  # noqa: F405
