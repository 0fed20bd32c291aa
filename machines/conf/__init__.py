"""The settings of the apps: the dict ``SIGNALBOX`` in Django's settings.

::

    from machines.conf import conf
    conf.PREFIX

``table`` has each setting's name, variable, kind and default, and reads the dict; ``kinds`` has the rules; ``server``
runs the Valkey server of the demo and of tests; ``encryption`` encrypts what SQL keeps.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .table import conf, mark_environment

__all__ = ["conf", "mark_environment"]


def __getattr__(name: str) -> Any:
    """Import the table, and the engine with it, for who asks for a setting: ``signalbox --help`` does not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import table

    return getattr(table, name)
