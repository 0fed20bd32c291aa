"""``python -m benchmarks.cluster``: a cluster of three primaries with a replica each, and one server beside it.

All nodes, the clients and the workers share the cores of this machine, so that throughput does not grow with nodes
here; what a step costs the servers does not depend on that.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import report
from benchmarks.report import Aim, Section
from benchmarks.stage import server
from machines.server.cluster import Cluster

from . import calls, finds, idle, pages, slices, timelines
from .place import Place

Found = tuple[Section, list[Aim]]
PARTS: dict[str, Callable[[Place, Place, Cluster], Found]] = {
    "calls": lambda one, many, cluster: calls.measure(one, many),
    "find": lambda one, many, cluster: finds.measure(one, many),
    "failover": lambda one, many, cluster: timelines.fail_over(many, cluster),
    "reshard": lambda one, many, cluster: timelines.reshard(many, cluster),
    "idle": lambda one, many, cluster: idle.measure(one, many),
    "pages": lambda one, many, cluster: pages.measure(one, many),
    "slices": lambda one, many, cluster: slices.measure(one),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--before", metavar="FOLDER", help="an older checkout, measured first in the part slices")
    parser.add_argument("--dry", action="store_true", help=f"leave {report.RESULTS.name} as it is")
    given = parser.parse_args()
    if given.before:
        PARTS["slices"] = lambda one, many, cluster: slices.measure(one, given.before)
    started, sections, aims = time.monotonic(), [], []
    with server(None) as url:
        for part in given.parts:
            with tempfile.TemporaryDirectory(prefix="signalbox-bench-") as folder, Cluster(Path(folder)) as cluster:
                section, more = PARTS[part](Place("one server", url), Place("3 + 3 nodes", cluster.url), cluster)
            section.note = f"{section.note} Load {os.getloadavg()[0]:.1f}.".strip()
            print(report.text([section]), flush=True)
            sections.append(section)
            aims += more
    print("\n" + "\n".join(map(str, aims)))
    if not given.dry:
        took = time.monotonic() - started
        part = "Cluster" if given.parts == list(PARTS) else f"Cluster: {', '.join(given.parts)}"
        report.write(part, sections, aims, "Valkey", took, command="make bench-cluster")


if __name__ == "__main__":
    main()
