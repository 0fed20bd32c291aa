"""Settings of a real worker process in a test: the project's, plus an app whose handlers the test controls."""

from dashboard.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.worker.app"]  # noqa: F405
