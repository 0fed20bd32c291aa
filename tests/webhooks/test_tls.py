"""Over TLS the certificate has to be of the name in the address, although it is an address that is connected to."""

import ssl
import subprocess

import pytest

from machines.models import Delivery
from machines.webhooks import http_post, management, sender
from tests.configuration import configure


@pytest.fixture
def certificate(tmp_path):
    """For the name localhost and no other, signed by itself."""
    key, made = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(["openssl", *words, *names, "-keyout", key, "-out", made], check=True, capture_output=True)
    return made, key


@pytest.fixture
def secure(receiver, certificate, settings, monkeypatch):
    """The receiver behind TLS, its certificate trusted; its URL with another host."""
    configure(settings, WEBHOOK_HOSTS=["localhost", "127.0.0.1"])
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    receiver.server.socket = served.wrap_socket(receiver.server.socket, server_side=True)
    port = receiver.server.server_address[1]
    return lambda host: f"https://{host}:{port}/in"


def sent(actor, hook, url) -> Delivery:
    webhook = hook(url, url=url)
    management.test(actor, webhook.pk)
    sender.send_due()
    return webhook.deliveries.get()


def test_only_a_certificate_that_is_believed_and_of_that_name_will_do(actor, hook, secure, receiver, certificate):
    stranger = sent(actor, hook, secure("localhost"))
    assert "certificate" in stranger.last["error"].lower()
    assert receiver.requests == []
    http_post.load_trusted().load_verify_locations(certificate[0])
    try:
        assert sent(actor, hook, secure("127.0.0.1")).last["status"] == 0  # the name in the address is another one
        assert sent(actor, hook, f"{secure('localhost')}?x").last["status"] == 204
    finally:
        http_post.load_trusted.cache_clear()
    ((_, headers, _),) = receiver.requests
    assert headers["Host"].startswith("localhost:")
