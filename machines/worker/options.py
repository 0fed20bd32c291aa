"""What a worker can be told."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, field

MAX_CONCURRENCY = 1000


def worker_id() -> str:
    """Readable, and unique even where process ids repeat (containers)."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """All times are in seconds."""

    queues: tuple[str, ...] = ()  # empty: every queue this worker has a handler for
    concurrency: int = 4  # jobs in hand at the same time
    drain: bool = False  # stop when the queues hold nothing to do
    once: bool = False  # stop after one batch
    grace: float = 20.0  # after TERM, jobs in hand have this long to finish; below the usual 30 s before a KILL
    block: float = 2.0  # an idle worker waits on the doorbell this long, then looks for new machines
    rescan: float = 15.0  # a doorbell can be lost (its waker died): every queue is looked into this often
    beat: float = 2.0  # the longest pause between two heartbeats: also how soon a withdrawn job is known
    sweep: float = 1.0  # pause between two sweeps that find nothing
    tick: float = 0.25  # the longest pause between two looks at timers: how late one may fire that was armed meanwhile
    backoff: float = 2.0  # the longest pause between two tries while Redis is away
    id: str = field(default_factory=worker_id)

    @property
    def patience(self) -> float:
        """How long to wait on the doorbell; shorter where the end of all work is waited for too."""
        return min(self.block, 0.2) if self.drain else self.block

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise ValueError(f"concurrency must be 1 to {MAX_CONCURRENCY}, not {self.concurrency}")
        if self.drain and self.once:
            raise ValueError("choose one of drain and once")
