"""The backend for Django's tasks framework, under the name that ``TASKS`` uses, and flows. Their code is in
``integrations.tasks``.

Other programs import a module ``tasks`` of each installed app, so this one imports the framework only on demand.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .integrations.tasks import PREVIOUS, SignalboxBackend, call, chain, chord, get_flow, get_job, group

__all__ = ["PREVIOUS", "SignalboxBackend", "call", "chain", "chord", "get_flow", "get_job", "group"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from .integrations import tasks

        return getattr(tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
