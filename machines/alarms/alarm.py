"""The record of an alarm, the kinds of alarms with their severities, the order of a list of alarms, and words that
several share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

CRITICAL, WARNING, INFO = "critical", "warning", "info"
SEVERITIES = (CRITICAL, WARNING, INFO)
"""The worst first."""
MANY = 100  # dead jobs of a queue, or instances past a service level, from which on the alarm is critical


class Kind(NamedTuple):
    """``severity``: of an alarm that says no other. ``advice``: what to do first."""

    severity: str
    advice: str


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "no-worker": Kind(CRITICAL, "Start a worker: python manage.py worker."),
        "partitions": Kind(CRITICAL, "Bring the lost nodes of the cluster back."),
        "unserved": Kind(CRITICAL, "Start a worker for the queue, or correct the queues that workers take."),
        "no-handler": Kind(CRITICAL, "Deploy the handler to a worker of the queue."),
        "timers": Kind(CRITICAL, "Open the machine's log and repair what the step refuses."),
        "dead": Kind(WARNING, "Read the error of one job; retry the jobs once its cause is gone."),
        "sla": Kind(WARNING, "Open the oldest instance and see what it waits for."),
        "exhausted": Kind(WARNING, "See that another worker takes its place, and why these handlers do not end."),
        "blocked": Kind(WARNING, "Find the call without await in the handler, or make it a plain function."),
        "clock": Kind(WARNING, "See which clock is right, correct the server's, and acknowledge this."),
        "quiet": Kind(WARNING, "Start another worker, or resume this one if it was made quiet by mistake."),
        "refused": Kind(WARNING, "Open the chart and find out who sends the events."),
        "rollout": Kind(WARNING, "Compare the two versions; withdraw the new one or publish a correction."),
        "paused": Kind(WARNING, "Ask who paused it, and resume it."),
        "stalled": Kind(WARNING, "Resume, or raise the limit of, what holds its jobs back."),
        "drift": Kind(WARNING, "Compare the instances of both times on the tab Insight of the machine."),
        "schedule": Kind(WARNING, "Take the schedule over if it is still wanted, or remove it."),
        "audit": Kind(WARNING, "Bring the receiver back; entries wait in the database until then."),
        "metrics": Kind(WARNING, "See the worker logs."),
        "approvals": Kind(INFO, "Decide the requests."),
    }
)
"""Kind -> its severity, and what to do first."""


OF_INSTALLATION = frozenset(
    {"no-worker", "partitions", "exhausted", "blocked", "clock", "quiet", "audit", "metrics", "approvals"}
)
"""Kinds of alarms that are about no single machine."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that needs attention.

    ``key`` stays the same while the cause does: ``dead:order/payment``. ``machine``: "" for one of the whole
    installation; ``machines``: all that it affects. ``since``: ms, 0 where nobody knows. ``count``: jobs, instances or
    others that it counts; ``causes``: what one line joins, such as the queues that wait for one worker. ``subject``: a
    queue or state of the machine; ``terms``: of the address of a list. ``url``: of its subject; ``act_url``: of a form
    that fixes it, if there is one; ``error``: the most frequent one of dead jobs, ``error_url``: of its group.
    ``acknowledged_at``, ``snoozed_until``: ms, 0 for not. ``operated``: whether the viewer may acknowledge, assign and
    snooze it.
    """

    key: str
    kind: str
    severity: str
    text: str
    machine: str = ""
    since: int = 0
    count: int = 0
    causes: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    subject: str = ""
    terms: Mapping[str, str] = field(default_factory=dict, hash=False)
    url: str = ""
    act: str = ""
    act_url: str = ""
    error: str = ""
    error_url: str = ""
    owner: str = ""
    acknowledged_by: str = ""
    acknowledged_at: int = 0
    snoozed_until: int = 0
    snoozed_by: str = ""
    snooze_reason: str = ""
    operated: bool = False

    @property
    def advice(self) -> str:
        """Return what to do first."""
        return KINDS[self.kind].advice

    @property
    def is_snoozed(self) -> bool:
        return self.snoozed_until > 0

    @property
    def affected(self) -> tuple[str, ...]:
        """Return the machines that it is about, without repetition."""
        return tuple(dict.fromkeys([*([self.machine] if self.machine else []), *self.machines]))


def read_machine(key: str) -> str:
    """Return the machine that a key names; "" for an alarm of the whole installation, and for a key of no kind."""
    kind, _, subject = key.partition(":")
    return subject.partition("/")[0] if kind in KINDS and kind not in OF_INSTALLATION else ""


def rank_severity(severity: str) -> int:
    """Return the place of a severity, 0 for the worst."""
    return SEVERITIES.index(severity)


def sort_alarms(alarms: Iterable[Alarm]) -> list[Alarm]:
    """Return the alarms with the worst severity first, and the oldest of each; those of unknown age come last."""
    return sorted(alarms, key=lambda alarm: (rank_severity(alarm.severity), not alarm.since, alarm.since, alarm.key))


def worst_by_machine(alarms: Iterable[Alarm]) -> dict[str, str]:
    """Return the worst severity of each machine that an alarm is about or affects."""
    found: dict[str, str] = {}
    for alarm in alarms:
        for machine in alarm.affected:
            held = found.get(machine)
            if held is None or rank_severity(alarm.severity) < rank_severity(held):
                found[machine] = alarm.severity
    return found


def pluralize(count: int, what: str) -> str:
    """Return ``1 job`` or ``1,200 jobs``."""
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def join_words(words: Sequence[str], most: int = 0) -> str:
    """Return ``a, b and c``; of more than ``most`` words the first, and how many more there are."""
    if most and len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
