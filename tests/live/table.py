"""Every kind of topic: on what the right to watch it is asked for. One that is not here fails the suite."""

from __future__ import annotations

#: those of one machine, with the place for its name
OF_MACHINE = {
    "machine": "machine:{}",
    "instance": "instance:{}/north",
    "queue": "queue:{}/crew",
    "job": "job:{}/0-1",
}
#: those about every machine that the visitor sees, and about no other
PLAIN = ("overview", "queues", "workers")
RIGHT = "view"
