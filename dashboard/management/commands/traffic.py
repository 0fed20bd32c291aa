"""``manage.py traffic``: moves the demo's instances."""

import logging
import math
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.demo.showcase import ask_for_move
from dashboard.demo.traffic import Traffic
from machines.connections import get_engine
from machines.engine.errors import EngineUnavailable, SignalboxError

log = logging.getLogger(__name__)
ASK_EVERY = 10  # beats
PAUSE = 1.0  # seconds between two tries while Redis is away


class Command(BaseCommand):
    help = "Drives instances of the sample machines at a steady rate, until it is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seed", type=int, default=7, help="the same seed makes the same choices (default 7)")
        parser.add_argument("--rate", type=float, default=5.0, help="events per second (default 5, at most 1000)")
        parser.add_argument("--beats", type=int, default=None, help="stop after this many events")

    def handle(self, *args: Any, **options: Any) -> None:
        rate = options["rate"]
        if not (math.isfinite(rate) and 0 < rate <= 1000):
            raise CommandError("--rate must be more than 0 and at most 1000")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        traffic = Traffic(get_engine(), options["seed"])
        _repeat_until_it_works(traffic.populate, stop)
        done, asked = 0, False
        while not stop.wait(1 / rate) and done != options["beats"]:
            _repeat_until_it_works(traffic.beat, stop)
            done += 1
            if not asked and done % ASK_EVERY == 0:
                asked = _ask_for_move()


def _ask_for_move() -> bool:
    """Return whether nothing is left to ask for; an operator may have been quicker with all of it."""
    try:
        return ask_for_move()
    except EngineUnavailable:
        return False
    except SignalboxError as error:
        log.warning("%s", error)
        return True


def _repeat_until_it_works(step: Any, stop: threading.Event) -> None:
    """Repeat a step until it works: Redis may go away and come back."""
    while not stop.is_set():
        try:
            step()
            return
        except EngineUnavailable as error:
            log.warning("%s; trying again", error)
            stop.wait(PAUSE)
