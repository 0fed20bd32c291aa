"""What docs/webhooks.md tells a receiver to do takes what is sent, and nothing else."""

import base64
import subprocess
import time

import pytest

from machines.webhooks import sender, signing
from tests.docs.test_examples import block

BODY = b'{"type":"order.paid"}'


@pytest.fixture(scope="module")
def verified():
    scope: dict = {}
    exec(compile(block("docs/webhooks.md", "python", "def verified"), "webhooks.md", "exec"), scope)
    return scope["verified"]


def test_the_page_takes_what_is_sent_with_either_secret_and_nothing_else(verified):
    old, new, other = (signing.new_secret() for _ in range(3))
    now = int(time.time())
    sent = signing.headers([new, old], "msg_1", now, BODY)
    assert verified(new, sent, BODY)
    assert verified(old, sent, BODY)
    assert not verified(other, sent, BODY)
    assert not verified(new, sent, BODY + b" ")
    assert not verified(new, sent | {"webhook-id": "msg_2"}, BODY)
    assert not verified(new, signing.headers([new], "msg_1", now - 301, BODY), BODY)
    assert not verified(new, sent | {"webhook-timestamp": "soon"}, BODY)
    assert not verified(new, {}, BODY)


def test_a_signature_is_the_one_that_openssl_makes():
    key = "0123456789abcdef0123456789abcdef"
    secret = "whsec_" + base64.b64encode(key.encode()).decode()
    ours = signing.signature(secret, "msg_1", 1_700_000_000, b"{}")
    command = ["openssl", "dgst", "-sha256", "-hmac", key, "-binary"]
    theirs = subprocess.run(command, input=b"msg_1.1700000000.{}", capture_output=True, check=True).stdout
    assert ours == "v1," + base64.b64encode(theirs).decode()


def test_the_page_names_the_pauses_that_are_kept():
    assert (5, 30, 120, 600, 1800, *(3600 * hours for hours in (1, 2, 4, 6, 8))) == sender.SCHEDULE
