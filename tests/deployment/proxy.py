"""A real nginx with the configuration of ``deploy/nginx``, ports changed, and clients that reach it by name."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
from pathlib import Path

import httpx

from machines.conf.server import GuardedProcess
from machines.conf.server.cluster import free_ports
from tests.installation.processes import eventually

from . import files
from .tools import find

HOST = "box.example.com"
MAIN = """
daemon off;
{user}
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/signalbox.conf;
}}
"""


def write_configuration(folder: Path, site: int, plain: int, secure: int) -> Path:
    """Write the proxy's files for a site on port ``site``; return the main one."""
    command = [find("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "privkey.pem"]
    command += ["-out", "fullchain.pem", "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    text = files.read("nginx/signalbox.conf")
    text = re.sub(r"^\s*listen \[::\].*\n", "", text, flags=re.MULTILINE)  # a machine may have no IPv6
    for old, new in (
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen 443 ", f"listen 127.0.0.1:{secure} "),
        ("server 127.0.0.1:8000;", f"server 127.0.0.1:{site};"),
        ("/etc/ssl/signalbox", str(folder)),
    ):
        assert old in text, old
        text = text.replace(old, new)
    (folder / "signalbox.conf").write_text(text, encoding="utf-8")
    main = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # the folders of tests are for their owner only
    main.write_text(MAIN.format(folder=folder, user=user), encoding="utf-8")
    return main


class Nginx:
    """``plain`` and ``secure``: its ports."""

    def __init__(self, folder: Path, site: int) -> None:
        self.folder = folder
        folder.mkdir()
        self.plain, self.secure = free_ports(2)
        main = write_configuration(folder, site, self.plain, self.secure)
        with (folder / "log").open("wb") as log:
            self._process = GuardedProcess([find("nginx"), "-p", str(folder), "-c", str(main)], output=log)
        eventually(self._listens, "nginx listens")

    def stop(self) -> None:
        self._process.stop()

    @property
    def origin(self) -> str:
        return f"https://{HOST}:{self.secure}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "fullchain.pem")

    def transport(self, address: str) -> httpx.BaseTransport:
        """The way from a client with this address to the proxy, whatever host its requests name."""
        return ByName(verify=self.trust, local_address=address)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.secure), timeout=1).close()
        except OSError:
            return False
        return True


class ByName(httpx.HTTPTransport):
    """Connects to this machine for every name, as an entry in /etc/hosts would."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(host="127.0.0.1")
        named = {**request.extensions, "sni_hostname": request.url.host}
        sent = httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=named)
        return super().handle_request(sent)
