"""``manage.py serve``: runs the site on uvicorn."""

from __future__ import annotations

import socket
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.serving import port, server


class Command(BaseCommand):
    help = "Serves the site, HTTP and websockets, until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000; 0: any)")
        parser.add_argument("--fd", type=int, help="listen on this inherited socket instead")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            listener = (
                socket.socket(fileno=options["fd"])
                if options["fd"] is not None
                else port.listen(options["host"], options["port"])
            )
        except (OSError, port.PortTaken) as error:
            raise CommandError(str(error)) from None
        with listener:
            self.stdout.write(f"Signalbox is at {port.address(listener)}")
            server.run(listener)
