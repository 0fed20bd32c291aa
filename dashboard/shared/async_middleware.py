"""Middleware that answers in a thread and in the event loop alike.

One that could not wait would push every request in front of it into a thread, static files too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest


class AsyncMiddleware:
    """``__call__`` of a class below this one returns its coroutine where ``iscoroutinefunction(self)``."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
