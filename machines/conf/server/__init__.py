"""Runs a Redis-compatible server as a supervised child process: the Valkey of the demo and of the tests.

::

    with Server(Path(".signalbox/valkey")) as server:
        redis.Redis.from_url(server.url)

``Cluster`` runs several as a Redis Cluster. A server lives as long as the process that started it, and not a second
longer: see ``guardian``.
"""

from .cluster import Cluster
from .folder import FolderInUse, ServerError, ServerFailed
from .guarded import GuardedProcess
from .server import Node, Server

__all__ = ["Cluster", "FolderInUse", "GuardedProcess", "Node", "Server", "ServerError", "ServerFailed"]
