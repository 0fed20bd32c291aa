"""Finding the handlers: each installed app's ``handlers.py``."""

from __future__ import annotations

from django.utils.module_loading import autodiscover_modules

from machines.worker.registry import Registry, handlers


def discover() -> Registry:
    """Imports ``handlers`` of every installed app and returns the registry they filled.

    An app without that module is fine; one whose module cannot be imported stops the start.
    """
    autodiscover_modules("handlers")
    return handlers
