"""Permissions (ACL) that an account needs on the Redis server, and how to read errors about missing ones.

A step runs inside the server with the rights of the account that calls it, and writes many kinds of keys. So every
account that moves instances needs all commands that the functions library runs: a step would fail halfway without one.
``dashboard.serving.checks.redis_accounts`` makes ACL lines of these.
"""

import re

from redis.exceptions import ResponseError

from machines.engine.errors import NotPermitted

READS = (
    "exists", "get", "hget", "hgetall", "hkeys", "hlen", "hmget", "llen", "lrange", "mget", "pfcount", "pttl", "scard",
    "smembers", "strlen", "sunion", "time", "type", "xinfo|consumers", "xinfo|groups", "xinfo|stream", "xlen",
    "xpending", "xrange", "xread", "xrevrange", "zcard", "zcount", "zlexcount", "zrange", "zrangebylex",
    "zrangebyscore", "zrevrange", "zrevrangebylex", "zrevrank", "zscan", "zscore",
)  # fmt: skip
WRITES = (
    "decrby", "del", "expire", "hdel", "hincrby", "hset", "hsetnx", "incr", "incrby", "lpush", "ltrim", "mset",
    "persist", "pexpire", "pfadd", "rpop", "rpush", "sadd", "set", "unlink", "xack", "xadd", "xautoclaim", "xclaim",
    "xdel", "xgroup|create", "xgroup|delconsumer", "xgroup|destroy", "xgroup|setid", "xreadgroup", "xtrim", "zadd",
    "zrem", "zremrangebyrank", "zremrangebyscore", "zunionstore",
)  # fmt: skip
CALLS = ("fcall", "fcall_ro", "info", "ping", "spublish")
LOADS = (
    "del", "exec", "fcall_ro", "function|delete", "function|list", "function|load", "get", "hgetall", "hset", "multi",
    "ping", "set",
)  # fmt: skip
"""What loads the functions library. An account with these can take the rights of every other one, since a function runs
with the rights of its caller."""
STEP = (*READS, *WRITES, *CALLS)
"""The commands that the functions library runs, and those that the engine and the patterns send beside it."""

_NAMED = re.compile(r"run the '([a-z_|]+)' command")
# Redis 7 names no command where a function ran it.
_DENIED = re.compile(
    r"no permissions|ACL failure in script|The user executing the script can't|can't access at least one of the keys",
    re.IGNORECASE,
)


def is_denied(text: str) -> bool:
    """Tell whether a server error says that the account lacks a permission."""
    return _DENIED.search(text) is not None


def find_missing(text: str) -> str:
    """Return the missing permission that a server error names, as ACL SETUSER calls it; "" where it names none."""
    if found := _NAMED.search(text):
        return found[1]
    for word in ("channel", "key"):
        if re.search(rf"\b{word}s?\b", text) and "command" not in text:
            return f"a pattern for the {word}s in use"
    return ""


def find_denial(error: BaseException | None) -> NotPermitted | None:
    """Return the missing permission if an error, or what caused it, is that the server refused the account."""
    while error is not None:
        if isinstance(error, NotPermitted):
            return error
        if isinstance(error, ResponseError) and is_denied(str(error)):
            return NotPermitted([named] if (named := find_missing(str(error))) else [])
        error = error.__cause__
    return None
