"""Writes the facts of a machine for other tools: XES (IEEE 1849) for process mining, and Parquet."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import quoteattr

from .records import Search
from .selection import select
from .store import Store, get_store

PART = 50_000  # steps that are read at once, or those of one instance where it has more
LATEST = 253_402_300_799_999  # ms: the end of the year 9999, after which the format has no times
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # no characters of XML


def write_parquet(machine: str, file: Path, *, store: Store | None = None) -> int:
    """Copy the steps with the ids of their instances; return how many."""
    return (store or get_store()).copy(machine, file)


def write_xes(search: Search, output: TextIO, *, store: Store | None = None) -> int:
    """Write a trace for each instance, in which an event is a step, named by the state that it led to; return the
    number of traces. Actors are left out."""
    chosen = select(search, store or get_store(), is_limited=False)
    output.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<log xes.version="1.0" xmlns="http://www.xes-standard.org/">\n'
    )
    output.write('<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>\n')
    output.write('<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>\n')
    count = number = after = 0
    pages = chosen.ask(
        "SELECT max(n) FROM (SELECT n, (sum(steps) OVER (ORDER BY n) - 1) // ? AS page FROM {chosen_instances}) "
        "GROUP BY page ORDER BY 1", before=(PART,),
    )  # fmt: skip
    for (last,) in pages:
        rows = chosen.ask(
            "WITH page AS (SELECT n, instance FROM {chosen_instances} WHERE n > ? AND n <= ?) "
            "SELECT n, instance, target, event, ms FROM {steps} JOIN page USING (n) ORDER BY n, revision", after, last,
        )  # fmt: skip
        for n, instance, target, event, ms in rows:
            if n != number:
                output.write(f"{'</trace>' if count else ''}<trace>{_string('concept:name', instance)}\n")
                number, count = n, count + 1
            at = datetime.fromtimestamp(min(max(ms, 0), LATEST) / 1000, UTC).isoformat(timespec="milliseconds")
            output.write(
                f"<event>{_string('concept:name', target)}{_string('signalbox:event', event)}"
                f'<date key="time:timestamp" value="{at}"/></event>\n'
            )
        after = last
    output.write(f"{'</trace>' if count else ''}</log>\n")
    return count


def _string(key: str, value: str) -> str:
    return f'<string key="{key}" value={quoteattr(CONTROL.sub("", value))}/>'
