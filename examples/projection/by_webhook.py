"""A table that follows a machine by a webhook: needs nothing but Python, and no access to Redis.

    WEBHOOK_SECRET=whsec_… python by_webhook.py orders.sqlite3 8080

Create a webhook for the messages `signalbox.step` of the machine, with this program's address. It may be down for a
day: what was not delivered is sent again. A message may come twice or late; the revision guards against both.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from table import open_table, write

MOST = 1 << 20  # bytes of a body
OLD = 300  # seconds after which a request counts as replayed


def is_signed(secret: str, headers: Any, body: bytes) -> bool:
    """Tell whether a request comes from the owner of the secret, and is not an old one (Standard Webhooks)."""
    id, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > OLD:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, f"{id}.{at}.".encode() + body, hashlib.sha256)).decode()
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(one, f"v1,{expected}") for one in given)


def make_server(connection: sqlite3.Connection, secret: str, port: int = 0) -> ThreadingHTTPServer:
    """Make the server, which listens on this machine alone: a proxy with TLS stands before it."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("content-length") or 0), MOST))
            if not is_signed(secret, self.headers, body):
                self.answer(401)
                return
            message = json.loads(body)
            if message["type"] == "signalbox.step":
                step = message["data"]
                with connection:
                    write(connection, step["instance"], step["payload"]["state"], step["revision"])
            self.answer(204)

        def answer(self, status: int) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing of each request."""

    return ThreadingHTTPServer(("127.0.0.1", port), Receiver)


if __name__ == "__main__":
    make_server(open_table(sys.argv[1]), os.environ["WEBHOOK_SECRET"], int(sys.argv[2])).serve_forever()
