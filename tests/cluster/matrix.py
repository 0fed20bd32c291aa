"""What each address answers while a shard is away, and the table of it in the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from dashboard.api.framework.operation import OPERATIONS
from tests.pages.table import OF_BULK, OF_INSTANCE, OF_KEY, OF_QUEUE, OF_SCHEDULE, OF_WORKER, TABLE

PAGE = Path(__file__).parents[2] / "docs" / "durability.md"
HEADING = "| addresses | "
WHOLE, AWAY = "200", "503, names the node"
LEFT_OUT = re.compile(r'data-away="([^"]+)"')
TOPICS = (
    "overview", "queues", "workers", "machine:activation", "instance:activation/ATV-123:NBCSports",
    "queue:new_device/todo", "job:new_device/0-1",
)  # fmt: skip
ADMIN = {
    "admin": "/admin/",
    "admin machines": "/admin/machines/machine/",
    "admin machine": "/admin/machines/machine/1/change/",
    "admin instances": "/admin/machines/machine/1/instances/",
    "admin instance": "/admin/machines/machine/1/instance/?id=ATV-123:NBCSports",
}
TERMS = {"search": "?q=ATV", "compareVersions": "?a=1&b=1"}

Answers = Mapping[str, tuple[int, str]]
"""Name of an address -> its status, and its text."""


def list_addresses() -> dict[str, str]:
    """Return every address that is read, by a name: pages, admin, API, topics of the live view."""
    found = {name: entry.url(name) for name, entry in TABLE.items() if entry.get == 200}
    found |= ADMIN
    for name, operation in OPERATIONS.items():
        if operation.method == "GET":
            path = re.sub(r"\{(?:\w+:)?(\w+)\}", lambda part, path=operation.path: _fill(path, part[1]), operation.path)
            found[f"API {name}"] = f"/api/v1{path}{TERMS.get(name, '')}"
    return found | {f"topic {topic.partition(':')[0]}": f"/api/v1/live/?topic={topic}" for topic in TOPICS}


def _fill(path: str, name: str) -> str:
    if name == "machine":
        return "new_device" if any(word in path for word in ("queue", "/jobs", "/plans")) else OF_INSTANCE["machine"]
    if name == "id":
        ids = {"instances": OF_INSTANCE["id"], "bulks": OF_BULK["id"], "jobs": "0-1"}
        return next((id for noun, id in ids.items() if f"/{noun}/" in path), "7")
    known = {
        "instance": OF_INSTANCE["id"], "queue": OF_QUEUE["queue"], "key": OF_KEY["key"], "name": OF_SCHEDULE["name"],
        "worker": OF_WORKER["worker"], "job": "0-1", "schedule": OF_SCHEDULE["name"], "bulk": OF_BULK["id"],
        "number": "1", "version": "1",
    }  # fmt: skip
    return known.get(name, "7")


def write_table(shards: Mapping[str, Answers]) -> str:
    """Return the table: one row for all addresses that answer alike. ``shards``: slots -> what was answered without
    them."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in next(iter(shards.values())):
        cells = tuple(_describe(answers[name]) for answers in shards.values())
        rows.setdefault(cells, []).append(f"`{name}`")
    lines = [f"{HEADING}{' | '.join(f'without {slots}' for slots in shards)} |", f"|{'---|' * (1 + len(shards))}"]
    lines += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in sorted(rows.items(), key=_count)]
    return "\n".join(lines) + "\n"


def _count(row: tuple[tuple[str, ...], list[str]]) -> tuple[int, str]:
    return -len(row[1]), row[1][0]


def _describe(answer: tuple[int, str]) -> str:
    status, text = answer
    if status != 200:
        return AWAY
    left_out = ", ".join(f"*{panel}*" for panel in list_left_out(text))
    return f"{WHOLE} without {left_out}" if left_out else WHOLE


def list_left_out(text: str) -> list[str]:
    """List the panels of a page that say which node is away."""
    return list(dict.fromkeys(LEFT_OUT.findall(text)))


def read_table() -> str:
    """Return the table as the page of the docs has it."""
    lines = PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(_find_table(lines))


def store_table(table: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(read_table(), table), encoding="utf-8")


def _find_table(lines: list[str]) -> Iterable[str]:
    start = next(number for number, line in enumerate(lines) if line.startswith(HEADING))
    for line in lines[start:]:
        if not line.startswith("|"):
            return
        yield line
