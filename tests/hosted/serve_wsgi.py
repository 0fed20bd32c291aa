"""The shop under WSGI, a thread for each request, on a listener it inherits (its descriptor is the argument)."""

from __future__ import annotations

import socket
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from shop.wsgi import application


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *words: object) -> None:
        """Write nothing: the log of the test is for exceptions."""


server = Server(("127.0.0.1", 0), Quiet, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=int(sys.argv[1]))
server.server_name, server.server_port = server.socket.getsockname()[:2]
server.setup_environ()
server.set_app(application)
server.serve_forever()
