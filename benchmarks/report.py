"""Prints figures on the terminal, and writes them into RESULTS.md with machine and date."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
RATIOS = Path(__file__).parent / "ratios.csv"
"""A line for each aim of each full run, with date and commit, so that a fall is seen."""


@dataclass(slots=True)
class Row:
    """One contender: operations a second (or what ``unit`` says), and its ratio to each peer by name."""

    title: str
    rate: float
    ratios: dict[str, float] = field(default_factory=dict)
    note: str = ""
    unit: str = "/s"

    @property
    def figure(self) -> str:
        return f"{self.rate:,.0f} {self.unit}" if self.rate >= 100 else f"{self.rate:,.1f} {self.unit}"

    @property
    def compared(self) -> str:
        return ", ".join(f"{ratio:.2f} x {peer}" for peer, ratio in self.ratios.items())


@dataclass(slots=True)
class Section:
    title: str
    rows: list[Row]
    note: str = ""
    aims: list[Aim] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure that should be reached: at least ``bound``, or at most."""

    what: str
    bound: float
    reached: float
    at_most: bool = False

    @property
    def held(self) -> bool:
        return self.reached <= self.bound if self.at_most else self.reached >= self.bound

    def __str__(self) -> str:
        aim = f"aim {'at most ' if self.at_most else ''}{self.bound:g}"
        return f"{self.what}: {self.reached:,.2f}, {aim}: {'reached' if self.held else 'MISSED'}"


def text(section: Section) -> str:
    lines = ["", section.title]
    for row in section.rows:
        lines.append(f"  {row.title:<52} {row.figure:>16}   {row.compared:<36} {row.note}".rstrip())
    return "\n".join([*lines, f"  ({section.note})"] if section.note else lines)


def show(section: Section) -> Section:
    """Print a section, and return it."""
    print(text(section), flush=True)
    return section


def note_load(section: Section) -> Section:
    """Note the load of the machine, which others may share, beside the figures."""
    section.note = f"{section.note} Load {os.getloadavg()[0]:.1f}.".strip()
    return section


def list_aims(sections: Sequence[Section]) -> list[Aim]:
    return [aim for section in sections for aim in section.aims]


def make_parser(module: str, description: str | None, parts: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser with the options that every command has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--parts", nargs="+", choices=list(parts), default=list(parts))
    parser.add_argument("--dry", action="store_true", help=f"leave {RESULTS.name} as it is")
    return parser


def finish(
    part: str,
    sections: Sequence[Section],
    server: str,
    started: float,
    *,
    keep: bool,
    command: str,
    notes: Sequence[str] = (),
) -> None:
    """Print what was reached of the aims; write the page where the run is to be kept."""
    took = time.monotonic() - started
    print("\n" + "\n".join(map(str, list_aims(sections))))
    print(f"\n{server}, {took:.0f} seconds")
    if keep:
        write(part, sections, server, took, command=command, notes=notes)
        print(f"written to {RESULTS.name}")


def write(
    part: str,
    sections: Sequence[Section],
    server: str,
    took: float,
    *,
    path: Path = RESULTS,
    command: str,
    notes: Sequence[str] = (),
) -> None:
    """Replace one part of the page, from its heading to the next one: the last figures only, the history is in git."""
    lines = [
        f"## {part}",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, one run of {took:.0f} seconds by `{command}`.",
        f"Machine: {describe_machine()}, {server}.",
        *notes,
    ]
    for section in sections:
        lines += ["", f"### {section.title}", "", *render_table(section.rows)]
        if section.note:
            lines += ["", section.note]
    aims = list_aims(sections)
    missed = [f"- {aim}".removesuffix(": MISSED") for aim in aims if not aim.held]
    lines += ["", f"### Aims: {part.lower()}", "", f"{len(aims) - len(missed)} of {len(aims)} reached."]
    lines += ["", "Missed:", "", *missed, "", ""] if missed else ["", ""]
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    begin = re.search(rf"^## {re.escape(part)}$", page, re.MULTILINE)
    start = begin.start() if begin else len(page)
    following = re.search(r"^## ", page[start + 1 :], re.MULTILINE)
    end = start + 1 + following.start() if begin and following else len(page)
    path.write_text((page[:start] + "\n".join(lines) + page[end:]).rstrip() + "\n", encoding="utf-8")


def render_table(rows: Sequence[Row]) -> list[str]:
    """Render rows without empty columns; rows titled "contender: figure" become one line for each contender."""
    parts = list(dict.fromkeys(row.title.rpartition(": ")[2] for row in rows))
    if all(": " in row.title for row in rows) and len(parts) < len(rows):
        lines: dict[str, dict[str, str]] = {}
        for row in rows:
            contender, _, part = row.title.rpartition(": ")
            words = (row.figure, row.compared, row.note)
            lines.setdefault(contender, {})[part] = ", ".join(word for word in words if word)
        cells = [[title, *(found.get(part, "") for part in parts)] for title, found in lines.items()]
        return _join_cells(["", *parts], cells)
    cells = [[row.title, row.figure, row.compared, row.note] for row in rows]
    used = [number for number in range(4) if any(line[number] for line in cells)]
    titles = ("", "figure", "ratio", "")
    return _join_cells([titles[number] for number in used], [[line[number] for number in used] for line in cells])


def _join_cells(titles: list[str], lines: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (titles, ["---", "---:", *["---"] * (len(titles) - 2)], *lines)]


def keep_ratios(aims: Sequence[Aim], *, path: Path = RATIOS) -> None:
    """Append what a run reached: date, commit, aim, figure, bound, least or most."""
    at, commit = f"{datetime.now(UTC):%Y-%m-%d %H:%M}", _commit()
    known = path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(["date (UTC)", "commit", "aim", "figure", "bound", "kind"])
        for aim in aims:
            writer.writerow(
                [at, commit, aim.what, round(aim.reached, 2), aim.bound, "most" if aim.at_most else "least"]
            )


def _commit() -> str:
    words = ["git", "-C", str(RATIOS.parent), "describe", "--always", "--dirty"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def describe_machine() -> str:
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores of {_processor()}, {system}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
