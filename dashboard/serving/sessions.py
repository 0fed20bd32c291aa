"""The session backend: the cache, which is Redis. While Redis is away a session is unavailable, not ended."""

from typing import Any

from django.contrib.sessions.backends import cache


class SessionStore(cache.SessionStore):
    """Django's own takes an error for "no such session": the visitor becomes a stranger and loses the cookie.

    Here the error goes on to the outage page, and the visitor is still logged in when Redis is back. A request waits
    for it once: whatever asks for its session again gets the same error at once.
    """

    _away: Exception | None = None

    def load(self) -> dict[str, Any]:
        if self._away is not None:
            raise self._away
        try:
            return self._take(self._cache.get(self.cache_key))
        except Exception as error:
            self._away = error
            raise

    async def aload(self) -> dict[str, Any]:
        return self._take(await self._cache.aget(await self.acache_key()))

    def _take(self, data: dict[str, Any] | None) -> dict[str, Any]:
        if data is None:  # expired, or made up
            self._session_key = None
        return data or {}
