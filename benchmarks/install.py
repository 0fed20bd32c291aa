"""Installed size, packages and import time of each extra: ``python -m benchmarks.install`` writes INSTALL.md.

Builds the wheel, installs each extra with the versions of requirements.lock into an empty environment of its own, and
starts a fresh interpreter for each import. It needs `make wheel`'s packages, and an index or a cache for pip.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from .report import describe_machine

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("INSTALL.md")
EXTRAS = ("", "scxml", "django", "dashboard", "demo", "postgres", "parquet", "test")
DJANGO_ALONE = """
from django.conf import settings
settings.configure(INSTALLED_APPS=["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
    "django.contrib.sessions", "django.contrib.messages"{more}], SIGNALBOX={{}})
import django
django.setup()
"""
OWN_SITE = "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'dashboard.settings'; import django; django.setup(){more}"
IMPORTS = {
    "redis-py alone": ("", "import redis"),
    "engine": ("", "from machines.engine import Engine"),
    "engine, formats (JSON, YAML)": ("", "from machines.engine import Engine; from machines.formats import load"),
    "worker without Django": ("", "import machines.worker.command.standalone"),
    "readers of SCXML and XState": ("scxml", "import machines.formats.scxml, machines.formats.xstate"),
    "Django with its admin, alone": ("django", DJANGO_ALONE.format(more="")),
    "the app `machines` in it": ("django", DJANGO_ALONE.format(more=", 'guardian', 'machines'")),
    "the control room (apps, settings)": ("dashboard", OWN_SITE.format(more="")),
    "the control room as it serves (addresses, sockets)": (
        "dashboard", OWN_SITE.format(more="; import dashboard.site_urls, dashboard.live.routing, uvicorn"),
    ),
    "the demo's own process": ("demo", OWN_SITE.format(more="; import dashboard.demo.demo")),
}  # fmt: skip
"""What is imported -> the extra that is needed, and the program."""
TIMED = """
import time as c
a, b = c.perf_counter(), c.process_time()
exec({program!r})
print(c.perf_counter() - a, c.process_time() - b)
"""


@dataclass
class Installed:
    """One extra in an environment of its own."""

    extra: str
    python: Path
    size: int = 0
    packages: int = 0
    largest: list[tuple[str, int]] = field(default_factory=list)


def build(into: Path) -> Path:
    """Build the wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = into.glob("*.whl")
    return wheel


def install(extra: str, wheel: Path, folder: Path) -> Installed:
    """Install an extra into an empty environment and measure its files, without compiled modules."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pins = folder / "pins.txt"
    found = [re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", (ROOT / f"requirements{name}.lock").read_text(), re.M)
             for name in ("-dev", "")]  # fmt: skip
    pins.write_text("\n".join(f"{name}=={version}" for name, version in {**dict(found[0]), **dict(found[1])}.items()))
    wanted = f"signalbox[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    command = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-compile", "-c", pins, wanted]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    (packages,) = folder.glob("lib/python*/site-packages")
    result = Installed(extra, python, packages=len(list(packages.glob("*.dist-info"))))
    sizes = {entry.name: _size(entry) for entry in packages.iterdir()}
    result.size = sum(sizes.values())
    result.largest = sorted(sizes.items(), key=lambda item: -item[1])[:3]
    return result


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)


def measure(python: Path, program: str, home: Path, runs: int) -> tuple[float, float]:
    """Return the medians of an import in a fresh interpreter with compiled modules: seconds, and seconds of CPU."""
    environment = {"PATH": os.environ["PATH"], "SIGNALBOX_HOME": str(home), "HOME": str(home)}
    command = [python, "-c", TIMED.format(program=program)]
    times = []
    for _ in range(runs + 1):
        done = subprocess.run(command, cwd=home, env=environment, check=True, capture_output=True, text=True)
        wall, processor = done.stdout.split()[-2:]
        times.append((float(wall), float(processor)))
    return median(wall for wall, _ in times[1:]), median(cpu for _, cpu in times[1:])  # the first run compiled


def write(installed: list[Installed], times: dict[str, tuple[float, float]], runs: int) -> str:
    """Write the page."""
    lines = [
        "# Installed size and import time",
        "",
        f"`python -m benchmarks.install`, {datetime.now(UTC):%Y-%m-%d}, {describe_machine()}, load",
        f"{os.getloadavg()[0]:.1f}.",
        "",
        "Each extra in an empty environment of its own, with the versions of `requirements.lock`.",
        "Sizes are of all files in `site-packages` without compiled modules; packages include Signalbox.",
        "",
        "| extra | MB | packages | largest |",
        "|---|---:|---:|---|",
    ]
    for one in installed:
        largest = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in one.largest)
        lines.append(f"| {one.extra or 'none'} | {one.size / 1e6:.1f} | {one.packages} | {largest} |")
    lines += [
        "",
        f"Import in a fresh interpreter: the median of {runs}, without the start of the interpreter.",
        "On a machine that does other work at the same time, CPU is the figure to look at.",
        "",
        "| import | extra | ms | ms of CPU |",
        "|---|---|---:|---:|",
    ]
    for what, (wall, processor) in times.items():
        lines.append(f"| {what} | {IMPORTS[what][0] or 'none'} | {wall * 1000:.0f} | {processor * 1000:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="interpreters for each import (default 9)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="signalbox-install-") as name:
        folder = Path(name)
        wheel = build(folder)
        installed = []
        for extra in EXTRAS:
            installed.append(install(extra, wheel, folder / (extra or "base")))
            print(f"{extra or 'base':10} {installed[-1].size / 1e6:8.1f} MB {installed[-1].packages:3} packages")
        pythons = {one.extra: one.python for one in installed}
        times = {}
        for what, (extra, program) in IMPORTS.items():
            times[what] = measure(pythons[extra], program, folder, runs)
            print(f"{what:50} {times[what][1] * 1000:6.0f} ms of CPU")
        RESULTS.write_text(write(installed, times, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
