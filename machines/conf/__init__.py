"""The settings of the apps: the dict ``SIGNALBOX`` in Django's settings.

::

    from machines.conf import conf
    conf.PREFIX

``table`` has each setting's name, variable, kind and default; ``kinds`` the rules; ``resolver`` reads the dict.
"""

from .resolver import conf

__all__ = ["conf"]
