"""A machine with indexed data, and what its indexes are to hold."""

import struct

import redis

from tests.engine.builders import NOW, fields, machine, publish

DATA = fields(
    serial={"type": "string", "default": ""},
    amount={"type": "number", "default": 0},
    active={"type": "boolean", "default": False},
    note={"type": ["string", "integer", "null"]},
    plain="integer",
)
INDEX = ["serial", "amount", "active", "note", "instance.id"]
SET = {
    "actions": {"set": {name: f"event.{name} if event.{name} is not None else {name}" for name in ("serial", "amount")}}
}
STATES = {
    "A": {"tags": ["open"], "on": {"go": {"target": "B"} | SET, "set": SET}},
    "B": {"tags": ["open"], "on": {"go": {"target": "C"} | SET, "set": SET}},
    "C": {"on": {"go": {"target": "A"} | SET, "drop": {"actions": {"unset": ["serial", "note"]}}}},
}
MACHINE = machine("m", STATES, context=DATA, index=INDEX)


def ids(page):
    return [instance.id for instance in page]


def every(engine, name="m", **options):
    """The ids of all pages, in their order."""
    found, cursor = [], None
    for _ in range(500):
        page = engine.find(name, cursor=cursor, **options)
        found += ids(page)
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the pages never end")


def mark(value):
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, str):
        return b"s" + value.encode().split(b"\0")[0][:64]
    bits = struct.unpack(">Q", struct.pack(">d", value or 0.0))[0]
    return b"n%016x" % (bits ^ (2**64 - 1 if bits >> 63 else 2**63))


def instances(engine, name="m"):
    return {one.id: one for state in engine.counts(name) for one in engine.find(name, state=state, limit=1000)}


def assert_exact(engine, name="m", index=INDEX):
    """Each index holds what the instances say, and nothing else."""
    here = instances(engine, name)
    pool = engine.client.connection_pool
    for field in index:
        held, expected = set(), set()
        for partition in engine._catalog.partitions(name):
            held |= {entry.encode("utf-8", "surrogateescape") for entry in _raw(pool, partition.lookup(field))}
        for id, instance in here.items():
            value = id if field == "instance.id" else instance.data.get(field)
            if isinstance(value, str | int | float):
                expected.add(mark(value) + b"\0" + id.encode())
        assert held == expected, field


def _raw(pool, key):
    options = {**pool.connection_kwargs, "encoding_errors": "surrogateescape"}
    client = redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))
    try:
        return client.zrange(key, 0, -1)
    finally:
        client.close()
        client.connection_pool.disconnect()


def row(engine, *data, name="m", definition=MACHINE):
    publish(engine, definition)
    for number, one in enumerate(data):
        engine.create(name, f"i{number}", one, now=NOW + number * 1000)
