"""The site's own settings, and the app whose handler the worker runs."""

from __future__ import annotations

from dashboard.settings import *  # noqa: F403
from dashboard.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.queues.ours"]
