"""The peers, installed once below ``.signalbox/bench-queues`` and again when what is pinned changes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PEERS = HERE / "peers"
REQUIREMENTS = HERE / "requirements.txt"
CACHE = HERE.parent.parent / ".signalbox" / "bench-queues"
NODE_SCRIPT = "bullmq.js"


class Missing(Exception):
    """A peer cannot be measured here; the text says why."""


def python() -> Path:
    """The interpreter of the virtual environment that holds the peers written in Python."""
    folder = CACHE / f"venv-{_digest(REQUIREMENTS.read_bytes(), sys.version.encode())}"
    if not (folder / "installed").exists():
        print(f"installing {REQUIREMENTS.name} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", folder])
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
        _run([*pip, "-r", REQUIREMENTS])
        (folder / "installed").touch()
    return folder / "bin" / "python"


def node() -> Path:
    """The folder in which ``node bullmq.js`` works."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Missing(f"there is no {program} on PATH (Debian: apt-get install nodejs npm)")
    package = PEERS / "package.json"
    folder = CACHE / f"node-{_digest(package.read_bytes())}"
    if not (folder / "installed").exists():
        print(f"installing {', '.join(_pinned_in_node())} into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(package, folder)
        _run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder)
        (folder / "installed").touch()
    shutil.copy(PEERS / NODE_SCRIPT, folder)
    return folder


def versions() -> list[str]:
    """What is measured, by the files that pin it."""
    pins = re.findall(r"^([a-z-]+)(?:\[\w+\])?==(\S+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE)
    found = [f"{name} {version}" for name, version in pins] + _pinned_in_node()
    if shutil.which("node"):
        found.append("Node " + subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip())
    return found


def _pinned_in_node() -> list[str]:
    dependencies = json.loads((PEERS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return [f"{name} {version}" for name, version in dependencies.items()]


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:12]


def _run(command: list[str | Path], cwd: Path | None = None) -> None:
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
