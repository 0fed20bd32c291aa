"""Builds the body of a message, without sensitive values."""

import json
from datetime import UTC, datetime
from typing import Any

from machines.audit.redaction import MASK, Redactor, strict_redactor
from machines.conf import conf
from machines.connections import get_engine
from machines.engine import BadInput, EngineFault, LookupFailed
from machines.engine.messages.emitted import LogEntry


class Writer:
    """Of one pass: what a machine hides is asked once."""

    def __init__(self) -> None:
        self._sensitive: dict[str, bool] = {}

    def body(self, machine: str, entry: LogEntry) -> str:
        """Return JSON in ASCII, so that its characters are its bytes."""
        about = {"machine": machine, "instance": entry.instance, "revision": entry.revision}
        return write_body(entry.name, entry.at, about | {"payload": self._mask(machine, entry)})

    def _mask(self, machine: str, entry: LogEntry) -> Any:
        """Return what is called like a sensitive field, and what the instance holds in one, wherever it stands.

        Of an instance that is gone, or damaged, the fields are unknown: the payload is left out.
        """
        if self._sensitive.get(machine) is False or entry.kind == "version":  # of no instance
            return entry.data
        redactor = strict_redactor(machine)
        self._sensitive[machine] = not redactor.open
        if redactor.open:
            return entry.data
        try:
            self._teach(redactor, machine, entry.instance)
        except (LookupFailed, EngineFault, BadInput):
            return MASK
        return redactor.value(entry.data)

    @staticmethod
    def _teach(redactor: Redactor, machine: str, instance: str) -> None:
        engine = get_engine()
        redactor.learn(engine.get(machine, instance).data)
        redactor.steps(engine.history(machine, instance))


def write_body(type: str, at: int, data: dict[str, Any]) -> str:
    """Write the body of a message. ``at``: ms since the epoch."""
    moment = datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
    body = {"type": type, "timestamp": moment.replace("+00:00", "Z"), "data": data}
    if conf.ENVIRONMENT:
        body["environment"] = conf.ENVIRONMENT["name"]
    return json.dumps(body, separators=(",", ":"))
