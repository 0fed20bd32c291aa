"""The settings of the apps: the dict ``SIGNALBOX`` in Django's settings.

::

    from machines.conf import conf
    conf.PREFIX

``table`` has each setting's name, variable, kind and default, and reads the dict; ``kinds`` has the rules.
"""

from .table import conf

__all__ = ["conf"]
