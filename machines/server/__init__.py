"""A Redis-compatible server as a supervised child of this process: the demo's and the tests' own Valkey.

::

    with Server(Path(".signalbox/valkey")) as server:
        redis.Redis.from_url(server.url)

The server lives as long as the process that started it, and not a second longer: see ``guardian``.
"""

from .errors import FolderInUse, ServerError, ServerFailed
from .guarded import Guarded
from .server import Server

__all__ = ["FolderInUse", "Guarded", "Server", "ServerError", "ServerFailed"]
