"""Settings of a real worker process in a test: the project's, plus an app whose functions the test controls."""

from dashboard.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.mapreduce.app"]  # noqa: F405
