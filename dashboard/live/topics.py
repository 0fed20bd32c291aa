"""The topics that can be watched, and the permission each needs."""

import re
from dataclasses import dataclass

from machines.engine import limits
from machines.people.permissions import EVERYTHING, Scope

#: the right each kind of topic needs, as `dashboard.shared.permissions` names rights
RIGHTS = {
    "overview": "view",
    "machine": "view",
    "instance": "view",
    "queues": "view",
    "queue": "view",
    "job": "view",
    "workers": "view",
}
_JOB = re.compile(r"[0-9]{1,5}-[0-9]{1,16}", re.ASCII)


def _check_job_id(text: str) -> str | None:
    return None if _JOB.fullmatch(text) else "is none: jobs are named <partition>-<number>"


PLAIN = frozenset({"overview", "queues", "workers"})
LISTING = frozenset({"overview", "queues"})  # these may name the machines that are wanted: overview:lamp,order
MAX_LISTED = 100
REDACTED = frozenset({"instance", "job"})
CHECKS = {
    "instance": ("instance id", limits.check_instance_id),
    "queue": ("queue name", limits.check_queue_name),
    "job": ("job id", _check_job_id),
}


class BadTopic(ValueError):
    """The text names no topic; says why."""


@dataclass(frozen=True, slots=True)
class Topic:
    """``name`` is the id of an instance or a job, or a queue's name.

    The same text shows less to an account that may see less: ``scope`` are the machines in it, for an instance those of
    its parent and children; ``redacted``, of an instance or a job, says that sensitive fields are masked. Sockets that
    see the same share one value. For an overview or queues ``name`` lists machines, with commas; "" stands for all.
    """

    kind: str
    machine: str = ""
    name: str = ""
    scope: Scope = EVERYTHING
    redacted: bool = False

    @property
    def right(self) -> str:
        return RIGHTS[self.kind]

    @property
    def listed(self) -> frozenset[str]:
        """The machines that an overview or queues are wanted of; empty for all."""
        return frozenset(self.name.split(",")) if self.kind in LISTING and self.name else frozenset()

    def __str__(self) -> str:
        if self.kind in PLAIN:
            return f"{self.kind}:{self.name}" if self.name else self.kind
        return f"{self.kind}:{self.machine}/{self.name}" if self.name else f"{self.kind}:{self.machine}"


def parse(text: object) -> Topic:
    """Return the topic that a text names; ``str()`` of the topic is the text again."""
    if not isinstance(text, str) or not text:
        raise BadTopic("a topic is a text such as machine:activation")
    if text in PLAIN:
        return Topic(text)
    kind, colon, rest = text.partition(":")
    if colon and kind in LISTING:
        return Topic(kind, name=_check_listed(rest))
    if not colon or kind not in RIGHTS or kind in PLAIN:
        raise BadTopic(
            f"there are topics overview, machine:, instance:, queues, queue:, job:, workers; not {text[:40]!r}"
        )
    machine, slash, name = rest.partition("/")
    if (why := limits.check_machine_name(machine)) is not None:
        raise BadTopic(f"the machine name {machine[:70]!r} {why}")
    return _make_topic(kind, machine, name if slash else None)


def _check_listed(text: str) -> str:
    names = text.split(",", MAX_LISTED)
    if len(names) > MAX_LISTED:
        raise BadTopic(f"a topic lists at most {MAX_LISTED} machines")
    for name in names:
        if (why := limits.check_machine_name(name)) is not None:
            raise BadTopic(f"the machine name {name[:70]!r} {why}")
    return ",".join(sorted(set(names)))


def _make_topic(kind: str, machine: str, name: str | None) -> Topic:
    if kind == "machine":
        if name is not None:
            raise BadTopic("machine:<name> has no second part")
        return Topic(kind, machine)
    if not name:
        raise BadTopic(f"{kind}: needs a machine and a name, as in {kind}:{machine}/name")
    what, check = CHECKS[kind]
    if (why := check(name)) is not None:
        raise BadTopic(f"the {what} {name[:70]!r} {why}")
    return Topic(kind, machine, name)
