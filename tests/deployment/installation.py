"""Starts what the files of ``deploy/`` start, as processes of this machine: Redis with its accounts, and the units'
commands."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from machines.conf.server import GuardedProcess
from machines.conf.server.cluster import free_ports
from machines.conf.server.folder import find_program
from tests.conftest import program as program_called
from tests.engine.connection.test_tls import sign
from tests.installation.processes import COMPILED, ROOT, eventually

from . import files

TLS = """port 0
tls-port {port}
tls-cert-file {folder}/server.pem
tls-key-file {folder}/server.key
tls-ca-cert-file {folder}/ca.pem
tls-auth-clients no
"""
SCRIPT = """import sys
sys.path.insert(0, {root!r})
from machines.cli import main
sys.exit(main())
"""  # what pip makes of the entry point, for a checkout


def write_secrets(folder: Path) -> Path:
    """Run make-secrets in a copy of ``deploy/``; return the folder of its files."""
    folder.mkdir()
    shutil.copy(files.DEPLOY / "make-secrets", folder)
    shutil.copytree(files.DEPLOY / "redis", folder / "redis")
    subprocess.run(["sh", folder / "make-secrets"], check=True)
    return folder / "secrets"


class RedisServer:
    """A server with ``deploy/redis/redis.conf``, on a port and in a folder of its own. ``tls``: it speaks nothing else,
    with a certificate of an authority of its own."""

    def __init__(self, folder: Path, secrets: Path, program: str = "", *, tls: bool = False) -> None:
        folder.mkdir()
        (self.port,) = free_ports(1)
        config = files.read("redis/redis.conf").replace("dir /data", f"dir {folder}")
        config = config.replace("/etc/redis/users.acl", str(secrets / "users.acl"))
        self._folder, self._tls = folder, tls
        listens = f"port {self.port}\n"
        if tls:
            sign(folder)
            listens = TLS.format(port=self.port, folder=folder)
        (folder / "redis.conf").write_text(f"{config}\n{listens}bind 127.0.0.1\n", encoding="utf-8")
        self._program = find_program(program_called(program))

    def url(self, account: str, secrets: Path) -> str:
        """The URL that make-secrets wrote for an account, with this server in place of that of compose."""
        url = (secrets / f"redis_url_{account}").read_text().replace("@redis:6379", f"@127.0.0.1:{self.port}")
        if self._tls:
            url = url.replace("redis://", "rediss://") + f"?ssl_ca_certs={self._folder}/ca.pem"
        return url

    def client(self, **options: Any) -> redis.Redis:
        if self._tls:
            options |= {"ssl": True, "ssl_ca_certs": str(self._folder / "ca.pem")}
        return redis.Redis(host="127.0.0.1", port=self.port, decode_responses=True, **options)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with (self._folder / "log").open("ab") as log:
            process = GuardedProcess([self._program, str(self._folder / "redis.conf")], output=log, grace=30)
        try:
            eventually(self._answers, f"the server answers: {(self._folder / 'log').read_text()}")
            yield
        finally:
            process.stop()

    def _answers(self) -> bool:
        try:
            with self.client(username="signalbox-probe", password="none") as probe:
                return bool(probe.ping())
        except redis.RedisError:
            return False


class Units:
    """Runs the ExecStart lines of the units in a folder of their own, with the variables that the units give them.

    ``values``: what stands in the files of /etc/signalbox that units are given as credentials, by name.
    """

    def __init__(self, folder: Path, values: dict[str, str], **variables: str) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir(parents=True)
        script = folder / "signalbox"
        script.write_text(SCRIPT.format(root=str(ROOT)), encoding="utf-8")
        self._program = [sys.executable, str(script)]
        self._values, self._variables = values, variables
        (self.port,) = free_ports(1)
        self.processes: dict[str, GuardedProcess] = {}

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a unit, and nothing of this process but its path and its compiled modules."""
        found = files.environment_file()
        credentials = self.folder / f"credentials of {name}"
        credentials.mkdir(exist_ok=True)
        for line in files.unit(name)["LoadCredential"]:
            as_name, _, path = line.partition(":")
            (credentials / as_name).write_text(self._values[Path(path).name], encoding="utf-8")
        for line in files.unit(name)["Environment"]:
            pairs = [pair.split("=", 1) for pair in shlex.split(line)]
            found |= {key: value.replace("%d", str(credentials)) for key, value in pairs}
        found["SIGNALBOX_HOME"] = str(self.state)
        return {"PATH": os.environ["PATH"], **COMPILED, **found, **self._variables}

    def command(self, name: str) -> list[str]:
        (line,) = files.unit(name)["ExecStart"]
        _, *arguments = shlex.split(re.sub(r"--port \d+", f"--port {self.port}", line))
        return [*self._program, *arguments]

    def run(self, name: str, *words: str) -> str:
        """Run a unit to its end, or another command (``words``) with its variables."""
        command = [*self._program, *words] if words else self.command(name)
        done = subprocess.run(
            command, cwd=self.state, env=self.environment(name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self, name: str) -> None:
        (stop,) = files.unit(name)["TimeoutStopSec"]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = GuardedProcess(
                self.command(name), output=log, env=self.environment(name), cwd=self.state, grace=float(stop)
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def stop(self) -> dict[str, int]:
        """Stop all together; return their exit codes."""
        for process in self.processes.values():
            process.ask()
        return {name: process.stop() for name, process in self.processes.items()}

    def listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True
