"""What the load driver sends: commands encoded beforehand, in the order each connection sends them.

Firing really moves instances. All calls send ``entitle`` with the right code, and ``now`` does the rest:

    Waiting    --entitle at T-----------> Active      (the code is right; expires = T + 28 days)
    Active     --entitle at T + 29 days-> Suspended   (expired)
    Suspended  --entitle at T + 30 days-> Waiting     (a new code, the same as before)

so that every call is an accepted transition into another state, for as long as the run lasts. A
connection fires at instances of its own, one after the other, so the order of each is kept.
"""

from __future__ import annotations

import json

from hiredis import pack_command

TOKEN = "MTOB1J"
START = 1_700_000_000_000  # ms
DAY = 86_400_000  # ms
PHASES = (START, START + 29 * DAY, START + 30 * DAY)
PAYLOAD = json.dumps({"token": TOKEN}, separators=(",", ":"))

CONNECTIONS = 50
INSTANCES = 48  # of each connection: a multiple of every pipeline depth
DEPTHS = (1, 16)


def ids(depth: int, connection: int) -> list[str]:
    """The instances one connection fires at; each depth has its own, so that each keeps its place in the cycle."""
    return [f"ATV-{depth}-{connection:03}-{number:03}:NBCSports" for number in range(INSTANCES)]


def commands(workload: str, prefix: str, depth: int, connection: int) -> list[bytes]:
    """The commands of one connection, to be sent over and over again."""
    return COMMANDS[workload](prefix, ids(depth, connection))


def peer_root(prefix: str) -> str:
    """Where the hand-written transition keeps its keys."""
    return f"{prefix}{{handwritten:0}}"


def _hset(prefix: str, names: list[str]) -> list[bytes]:
    return [pack_command(("HSET", f"{prefix}hset:{name}", "state", "Active")) for name in names]


def _empty(prefix: str, names: list[str]) -> list[bytes]:
    return [pack_command(("FCALL", "bench_empty", 1, f"{prefix}empty:{name}")) for name in names]


def _handwritten(prefix: str, names: list[str]) -> list[bytes]:
    root = peer_root(prefix)
    return [pack_command(("FCALL", "bench_entitle", 1, root, name, TOKEN, now)) for now in PHASES for name in names]


def _fire(prefix: str, names: list[str]) -> list[bytes]:
    root = f"{prefix}{{activation:0}}"
    return [
        pack_command(("FCALL", "sb_fire", 1, root, name, "entitle", PAYLOAD, "", "", "", "", now))
        for now in PHASES
        for name in names
    ]


COMMANDS = {"HSET": _hset, "empty": _empty, "hand-written": _handwritten, "fire": _fire}
