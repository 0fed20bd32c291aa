"""Django system check of a project that has the app machines, with or without the pages."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Warning, register

from .project import find_foreign_dashboard


@register("signalbox")
def foreign_dashboard(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """W023: the package dashboard is somebody else's."""
    return [Warning(one.text, hint=one.hint, id=one.id) for one in find_foreign_dashboard()]
