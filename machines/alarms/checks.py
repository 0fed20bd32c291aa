"""System check of ``ALARM_ROUTES``: E060, a route whose address, hours or filter does not fit."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from machines.conf import resolver
from machines.conf.project_check import TAG, WORKER_TAG

from .routes import find_problems


@register(TAG, WORKER_TAG)
def check_routes(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if resolver.find_problems():
        return []  # E016 says what is wrong
    hint = "docs/alarms.md has what a route says."
    return [Error(why, hint=hint, id="signalbox.E060") for why in find_problems()]
