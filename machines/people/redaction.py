"""Redacts what a machine hides for one actor; what people are shown of it in clear is noted for the audit."""

from collections.abc import Iterator
from contextlib import contextmanager

from machines.audit import redaction
from machines.audit.redaction import Redactor
from machines.audit.reveals import RevealAudit, Viewer
from machines.engine import BadPayload, Instance, Refused, SensitiveFields

from .actor import Actor
from .permissions import among


def redactor_of(actor: Actor, machine: str, known: SensitiveFields | None = None) -> Redactor:
    """Return what is hidden from them of this machine. What a person is shown of it in clear is noted for the audit.

    ``known``: what is sensitive, where that was read already; else it costs a round trip.
    """
    reveal = actor.may("reveal", machine)
    if reveal and actor.is_person:
        return RevealAudit(Viewer(actor.user, actor.source), machine, hidden=None if known is None else known.names)
    return redaction.redactor_if(reveal, machine, known)


@contextmanager
def redacting(actor: Actor, machine: str, *, strict: bool = False) -> Iterator[None]:
    """Redact errors of the engine that leave the block, for this actor or, ``strict``, for everybody. What is sensitive
    is asked for only where there is such an error."""
    try:
        yield
    except (Refused, BadPayload):
        redactor = redaction.strict_redactor(machine) if strict else redactor_of(actor, machine)
        with redactor.raising():
            raise


def show_to(actor: Actor, instance: Instance) -> Instance:
    """Return an instance of a machine they may see: masked, and without kin of machines out of their scope."""
    return redactor_of(actor, instance.machine).instance(among(instance, actor.scope()))
