"""Middleware that runs in a thread and in the event loop alike.

Middleware without async support would move every request into a thread, static files too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest


class AsyncMiddleware:
    """Marks a subclass as async if its ``get_response`` is; its ``__call__`` then returns a coroutine."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)
