"""``manage.py demo``: runs the demo on this machine."""

import logging
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.demo.demo import Demo, Options
from dashboard.demo.processes import DemoFailed
from dashboard.serving.server import PortTaken
from machines.conf.server import ServerError


class Command(BaseCommand):
    help = "Starts a Valkey, sample machines, workers, traffic and the site, until Ctrl-C. Data stays in .signalbox/."
    requires_system_checks = []  # the server they look at is not there yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address of the site (default 127.0.0.1)")
        parser.add_argument(
            "--port", type=int, default=8000, help="port of the site; the next free one if busy (default 8000)"
        )
        parser.add_argument("--seed", type=int, default=7, help="random seed of the traffic (default 7)")
        parser.add_argument("--rate", type=float, default=5.0, help="events per second of the traffic (default 5)")
        parser.add_argument(
            "--no-traffic", action="store_true", help="no traffic: nothing changes unless you change it"
        )
        parser.add_argument(
            "--cluster", action="store_true", help="run on a Redis Cluster of 3 primaries with a replica each"
        )
        parser.add_argument(
            "--with-parent", action="store_true", help="end when the process that started this one ends"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = Options(
            host=options["host"],
            port=options["port"],
            seed=options["seed"],
            rate=0 if options["no_traffic"] else options["rate"],
            with_parent=options["with_parent"],
            cluster=options["cluster"],
        )
        logging.getLogger("signalbox.audit.head").setLevel(logging.WARNING)  # what is prepared has entries
        try:
            Demo(chosen, say=self._print).run()
        except (DemoFailed, ServerError, PortTaken) as error:
            raise CommandError(str(error)) from None

    def _print(self, line: str = "") -> None:
        self.stdout.write(line)
        self.stdout.flush()
