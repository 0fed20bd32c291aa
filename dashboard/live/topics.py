"""What can be watched, and by whom."""

from __future__ import annotations

from dataclasses import dataclass

from machines.engine import limits

#: the right each kind of topic needs, as `dashboard.access` names rights
RIGHTS = {
    "overview": "view",
    "machine": "view",
    "instance": "view",
    "queues": "view",
    "queue": "view",
    "workers": "view",
}
#: kind, how it is written, and what its value holds
FORMS = (
    (
        "overview",
        "overview",
        "`machines`: by name `version`, `counts` by leaf state, `total` (instances: one that stands in several regions"
        " is counted once), `overdue` (timers past their time), `queues` by name; `workers`: how many are alive",
    ),
    (
        "machine",
        "machine:<name>",
        "`machine`, `version`, `counts` by leaf state, `oldest` (by leaf state the ms its longest-staying instance"
        " came), `flow` (how often `<version>:<transition>` was taken), `queues` by name, `total` (instances), `timers`"
        " and `overdue` (how many deadlines are set, and past), `mail` (messages under way), `now` (Redis time, ms)",
    ),
    ("instance", "instance:<machine>/<id>", "the instance, as the engine gives it; the id may hold slashes and spaces"),
    ("queues", "queues", "`queues`: by `<machine>/<queue>` how many jobs are `ready`, `leased`, `delayed`, `dead`"),
    ("queue", "queue:<machine>/<queue>", "`ready`, `leased`, `delayed`, `dead`"),
    ("workers", "workers", "`workers`: by id the row of each worker alive"),
)
PLAIN = frozenset({"overview", "queues", "workers"})
CHECKS = {
    "instance": ("instance id", limits.check_instance_id),
    "queue": ("queue name", limits.check_queue_name),
}


class BadTopic(ValueError):
    """The text names no topic; says why."""


@dataclass(frozen=True, slots=True)
class Topic:
    """``name`` is an instance's id or a queue's name."""

    kind: str
    machine: str = ""
    name: str = ""

    @property
    def right(self) -> str:
        return RIGHTS[self.kind]

    def __str__(self) -> str:
        if self.kind in PLAIN:
            return self.kind
        return f"{self.kind}:{self.machine}/{self.name}" if self.name else f"{self.kind}:{self.machine}"


def parse(text: object) -> Topic:
    """The topic a text names; ``str()`` of it is the text again."""
    if not isinstance(text, str) or not text:
        raise BadTopic("a topic is a text such as machine:activation")
    if text in PLAIN:
        return Topic(text)
    kind, colon, rest = text.partition(":")
    if not colon or kind not in RIGHTS or kind in PLAIN:
        raise BadTopic(f"there are topics overview, machine:, instance:, queues, queue:, workers; not {text[:40]!r}")
    machine, slash, name = rest.partition("/")
    if (why := limits.check_machine_name(machine)) is not None:
        raise BadTopic(f"the machine name {machine[:70]!r} {why}")
    return _named(kind, machine, name if slash else None)


def _named(kind: str, machine: str, name: str | None) -> Topic:
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
