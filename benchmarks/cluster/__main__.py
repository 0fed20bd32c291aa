"""``python -m benchmarks.cluster``: a cluster of three primaries with a replica each, and one server beside it.

All nodes, the clients and the workers share the cores of this machine, so that throughput does not grow with nodes
here; what a step costs the servers does not depend on that.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import report
from benchmarks.report import Section
from benchmarks.stage import server
from tests.clusters import Cluster

from . import calls, idle, pages, slices, timelines
from .place import Place

PARTS: dict[str, Callable[[Place, Place, Cluster], Section]] = {
    "calls": lambda one, many, cluster: calls.measure(one, many),
    "failover": lambda one, many, cluster: timelines.fail_over(many, cluster),
    "reshard": lambda one, many, cluster: timelines.reshard(many, cluster),
    "idle": lambda one, many, cluster: idle.measure(one, many),
    "pages": lambda one, many, cluster: pages.measure(one, many),
    "slices": lambda one, many, cluster: slices.measure(one),
}


def main() -> None:
    parser = report.make_parser("benchmarks.cluster", __doc__, PARTS)
    given = parser.parse_args()
    started, sections = time.monotonic(), []
    with server(None) as url:
        for part in given.parts:
            with tempfile.TemporaryDirectory(prefix="signalbox-bench-") as folder, Cluster(Path(folder)) as cluster:
                section = PARTS[part](Place("one server", url), Place("3 + 3 nodes", cluster.url), cluster)
            sections.append(report.show(report.note_load(section)))
    part = "Cluster" if given.parts == list(PARTS) else f"Cluster: {', '.join(given.parts)}"
    report.finish(part, sections, "Valkey", started, keep=not given.dry, command="make bench-cluster")


if __name__ == "__main__":
    main()
