"""``python -m benchmarks.starvation``: each attack in turn on the real site, and what somebody else notices of it."""

from __future__ import annotations

import argparse
import json
import platform
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.site import Site
from benchmarks.stage import PREFIX, Stage, server

from . import page, scene
from .attacks import ATTACKS
from .measured import measured


def main() -> None:
    given = _arguments()
    if given.page:
        page.write(given.page)
        print(f"written to {page.PAGE.name}")
        return
    with server(None) as url:
        stage = Stage(url)
        stage.clear()
        stage.engine.load_library()
        members = scene.fill(url, PREFIX)
        with Site(url) as site:
            rows = list(measured(scene.prepare(site, members), given.only))
    if given.keep:
        run = {"label": given.label, "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "rows": rows}
        run |= {"python": platform.python_version()}
        given.keep.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starvation", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--label", default="figures", help="what they are called on the page, such as before or after")
    parser.add_argument("--keep", type=Path, help="a file for the figures, as JSON")
    parser.add_argument(
        "--page", nargs="+", type=Path, metavar="FILE", help="write STARVATION.md of such files instead"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
