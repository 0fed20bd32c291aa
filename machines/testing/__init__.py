"""Tests of projects that use Signalbox: the pytest plugin with the fixture ``signalbox``.

- ``plugin``: options and fixtures; it imports nothing else until a test asks for one
- ``fixtures``: the Valkey of a test run, the kit for classes of unittest, and coverage of a run
- ``clock``: virtual time, and the engine that runs by it
- ``kit``: what the fixture gives; ``assertions``: its assertions, and instances, histories and jobs as text;
  ``job_runner``: handlers run in the test
- ``django_binding``: settings and engine of a Django project during a test
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fixtures import SignalboxMixin
    from .job_runner import JobRun
    from .kit import Signalbox

__all__ = ["JobRun", "Signalbox", "SignalboxMixin"]

_MODULES = {"JobRun": "job_runner", "Signalbox": "kit", "SignalboxMixin": "fixtures"}


def __getattr__(name: str) -> Any:
    """Import the classes that annotations name when they are first used: the plugin stays light."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from machines.conf import extras

    extras.require("the test kit", "test")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
