"""TLS with a certificate authority of one's own: one server, and the options that name the authority."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.core.cache import CacheHandler

from dashboard.live.hub.connections import connect as connect_asynchronously
from dashboard.live.limits import limits
from dashboard.site import stores
from machines.conf.server import GuardedProcess
from machines.conf.server.cluster import free_ports
from machines.engine import AsyncEngine, Engine, EngineUnavailable
from tests.engine.builders import door, machine
from tests.installation.processes import eventually

pytestmark = pytest.mark.second_redis


def sign(folder: Path, name: str = "IP:127.0.0.1") -> None:
    """Make an authority, and a certificate of it for a name."""

    def run(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=An authority of this test")  # fmt: skip
    run("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=redis")
    (folder / "names").write_text(f"subjectAltName={name}\n", encoding="utf-8")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "server.pem")  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of a server that speaks TLS alone, and the folder with the authority's certificate."""
    for program in ("redis-server", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    folder = tmp_path_factory.mktemp("tls")
    sign(folder)
    (port,) = free_ports(1)
    words = ["--port", "0", "--save", "", "--bind", "127.0.0.1",
             "--tls-port", str(port), "--tls-cert-file", "server.pem", "--tls-key-file", "server.key",
             "--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", "no"]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = GuardedProcess(["redis-server", *words], output=log, cwd=folder)
    client = redis.Redis(host="127.0.0.1", port=port, ssl=True, ssl_ca_certs=str(folder / "ca.pem"))

    def answers() -> bool:
        try:
            return client.ping()
        except redis.ConnectionError:
            return False

    eventually(answers, "the server answers")
    client.close()
    yield port, folder
    process.stop()


@pytest.fixture
def named_node(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster of one node, whose certificate and announcement name the host, and no address."""
    host = socket.gethostname()
    try:
        address = socket.gethostbyname(host)
    except OSError:
        pytest.skip(f"{host} has no address here")
    if shutil.which("redis-server") is None or shutil.which("openssl") is None:
        pytest.skip("needs redis-server and openssl")
    sign(tmp_path, f"DNS:{host}")
    port, bus = free_ports(2)
    words = ["--port", "0", "--save", "", "--bind", address, "--tls-port", str(port), "--cluster-port", str(bus),
             "--tls-cert-file", "server.pem", "--tls-key-file", "server.key", "--tls-ca-cert-file", "ca.pem",
             "--tls-auth-clients", "no", "--tls-cluster", "yes", "--cluster-enabled", "yes",
             "--cluster-announce-hostname", host, "--cluster-preferred-endpoint-type", "hostname"]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = GuardedProcess(["redis-server", *words], output=log, cwd=tmp_path)
    try:
        with redis.Redis(host=host, port=port, ssl=True, ssl_ca_certs=str(tmp_path / "ca.pem")) as client:

            def asks(wanted: str) -> bool:
                try:
                    return str(client.cluster("INFO")["cluster_state"]) in wanted
                except redis.ConnectionError:
                    return False

            eventually(lambda: asks("ok fail"), "the node answers")
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            eventually(lambda: asks("ok"), "the cluster is up")
        yield f"rediss+cluster://{address}:1,{host}:{port}/?ssl_ca_certs={tmp_path}/ca.pem"
    finally:
        process.stop()


def test_nodes_of_a_cluster_are_trusted_by_the_names_that_they_announce(named_node: str) -> None:
    engine = Engine.from_url(named_node, prefix="tls:", partitions=4)
    engine.publish(door())
    engine.create("door", "north")
    assert engine.fire("door", "north", "open").state == "Open"
    assert {node.host for node in engine.client.get_nodes()} == {socket.gethostname()}
    engine.client.close()


def test_an_authority_that_the_url_names_is_trusted(server: tuple[int, Path]) -> None:
    port, folder = server
    engine = Engine.from_url(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={folder}/ca.pem", prefix="tls:")
    engine.publish(door())
    engine.create("door", "north")
    assert engine.fire("door", "north", "open").state == "Open"
    engine.client.close()


async def test_asyncio_trusts_it_too(server: tuple[int, Path]) -> None:
    port, folder = server
    url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={folder}/ca.pem"
    async with AsyncEngine.from_url(url, prefix="atls:") as engine:
        await engine.publish(machine("notes", {"On": {"on": {"note": "On"}}}, context={"text": "n" * 20_000}))
        made = await asyncio.gather(*(engine.create("notes") for _ in range(100)))
        fired = await asyncio.gather(*(engine.fire("notes", one.id, "note", replicas=1) for one in made[:10]))
        assert [one.id for one in fired] == [one.id for one in made[:10]]
        assert len((await engine.find("notes", limit=200)).instances) == 100
    async with AsyncEngine.from_url(f"rediss://127.0.0.1:{port}/0") as stranger:
        with pytest.raises(EngineUnavailable, match="certificate"):
            await stranger.machines()


def test_an_authority_that_nobody_named_is_not_trusted(server: tuple[int, Path]) -> None:
    port, _ = server
    engine = Engine.from_url(f"rediss://127.0.0.1:{port}/0", prefix="tls:")
    with pytest.raises(EngineUnavailable, match="certificate"):
        engine.machines()
    engine.client.close()


def test_a_client_certificate_goes_into_the_url(server: tuple[int, Path]) -> None:
    port, folder = server
    authority = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={folder}/ca.pem"
    owner = redis.Redis.from_url(authority)
    owner.config_set("tls-auth-clients", "yes")
    known = Engine.from_url(
        f"{authority}&ssl_certfile={folder}/server.pem&ssl_keyfile={folder}/server.key", prefix="tls:"
    )
    stranger = Engine.from_url(authority, prefix="tls:")
    try:
        known.ping()
        with pytest.raises(EngineUnavailable):
            stranger.machines()
    finally:
        owner.config_set("tls-auth-clients", "no")  # on the connection from before
        owner.close()
        known.client.close()
        stranger.client.close()


def test_the_cache_and_the_live_view_trust_it_too(server: tuple[int, Path]) -> None:
    port, folder = server
    url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={folder}/ca.pem"
    client = CacheHandler(stores.caches(url, "tls:")).create_connection("default")
    client.set("k", {"n": 1})
    assert client.get("k") == {"n": 1}
    client.close()

    async def ping() -> bool:
        listening = connect_asynchronously(url, limits())
        try:
            return bool(await listening.ping())
        finally:
            await listening.aclose()

    assert asyncio.run(ping())
