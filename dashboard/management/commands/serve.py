"""``manage.py serve``: runs the site on uvicorn."""

import socket
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.serving import server
from machines.worker.command.command_line import list_restart_command
from machines.worker.supervisor import Supervisor

MAX_PROCESSES = 64


class Command(BaseCommand):
    help = "Serves the site, HTTP and websockets, until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000; 0: any)")
        parser.add_argument(
            "--processes", type=int, default=1, metavar="N", help=f"web processes, 1 to {MAX_PROCESSES} (default 1)"
        )
        parser.add_argument("--fd", type=int, help="listen on this inherited socket instead")

    def handle(self, *args: Any, **options: Any) -> None:
        if not 1 <= options["processes"] <= MAX_PROCESSES:
            raise CommandError(f"processes must be 1 to {MAX_PROCESSES}, not {options['processes']}")
        try:
            listener = (
                socket.socket(fileno=options["fd"])
                if options["fd"] is not None
                else server.listen(options["host"], options["port"])
            )
        except (OSError, server.PortTaken) as error:
            raise CommandError(str(error)) from None
        with listener:
            self.stdout.write(f"Signalbox is at {server.address(listener)}")
            if options["processes"] == 1:
                server.run(listener)
            elif code := self._supervise(listener, options["processes"]):
                sys.exit(code)

    def _supervise(self, listener: socket.socket, processes: int) -> int:
        """Run several processes that accept connections of one listener; return the exit code."""
        command = list_restart_command("serve", "--fd", str(listener.fileno()))
        held = (listener.fileno(),)
        supervisor = Supervisor(command, processes, grace=server.CLOSING, descriptors=held, what="web processes")
        return supervisor.run(self.stdout)
