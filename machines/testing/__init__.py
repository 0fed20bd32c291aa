"""Tests of projects that use Signalbox: the pytest plugin with the fixture ``signalbox``.

- ``plugin``: options and fixtures; it imports nothing else until a test asks for one
- ``server``: the Valkey of a test run, or the server that an option names
- ``clock``: virtual time, and the engine that runs by it
- ``kit``: what the fixture gives; ``assertions``: its assertions; ``job_runner``: handlers run in the test
- ``report``: instances, histories and jobs as text
- ``classes``: the same for classes of unittest
- ``django_binding``: settings and engine of a Django project during a test
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classes import SignalboxMixin
    from .job_runner import JobRun
    from .kit import Signalbox

__all__ = ["JobRun", "Signalbox", "SignalboxMixin"]


def __getattr__(name: str) -> Any:
    """Import the classes that annotations name when they are first used: the plugin stays light."""
    if name in __all__:
        from machines.conf import extras

        extras.require("the test kit", "test")
    if name == "Signalbox":
        from .kit import Signalbox

        return Signalbox
    if name == "JobRun":
        from .job_runner import JobRun

        return JobRun
    if name == "SignalboxMixin":
        from .classes import SignalboxMixin

        return SignalboxMixin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
