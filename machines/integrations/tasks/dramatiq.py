"""Actors of Dramatiq, called by ``invoke``: their own worker runs them, and the result ends the invoke.

::

    # handlers.py                                      # the module of the broker
    from machines.integrations.tasks.dramatiq import add_handler
    from machines.integrations.tasks.dramatiq import Reports
    from shop.actors import charge

    add_handler("charge", charge)                      broker.add_middleware(Reports(), before=Retries)
"""

from typing import Any

import dramatiq

from . import handover
from .handover import HEADER, HOUR, Ticket, report_done, report_failed


def add_handler(name: str, actor: dramatiq.Actor[Any, Any], *, seconds: int = HOUR) -> None:
    """Have jobs for the handler ``name`` run by an actor of Dramatiq. Its keyword arguments are the input of the job.

    ``seconds``: how long the message may wait and run, its own retries included; then the job is tried again.
    """

    def send(arguments: dict[str, Any], ticket: Ticket) -> None:
        actor.send_with_options(kwargs=arguments, **{HEADER: ticket})

    handover.add_handler(name, send, seconds, "Dramatiq", actor.actor_name)


class MessageSkipped(Exception):
    """A message of Dramatiq was skipped or rejected by its middleware."""


class Reports(dramatiq.Middleware):
    """Has workers of Dramatiq report the ends of messages that came from ``add_handler``. It stands before ``Retries``,
    so that it hears of a failure after ``Retries`` has decided whether there is another try."""

    @property
    def actor_options(self) -> set[str]:
        return {HEADER}

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if (ticket := message.options.get(HEADER)) is None:
            return
        if exception is None:
            report_done(ticket, result)
        elif message.failed:
            report_failed(ticket, exception)

    def after_skip_message(self, broker: Any, message: Any) -> None:
        if (ticket := message.options.get(HEADER)) is not None:
            report_failed(ticket, MessageSkipped("the message was skipped"))
