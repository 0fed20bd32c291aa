"""The options of a worker."""

import os
import secrets
import socket
from dataclasses import dataclass, field

MAX_CONCURRENCY = 1000
MAX_PREFETCH = 1000
MAX_PROCESSES = 256
MAX_GRACE = 24 * 3600  # seconds
EXHAUSTED = 75  # exit code (EX_TEMPFAIL) of a worker of whose handlers too many hang: start another in its place


def worker_id() -> str:
    """Readable, and unique even where process ids repeat (containers)."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """All times are in seconds."""

    queues: tuple[str, ...] = ()  # "queue" or "machine/queue"; empty: every queue this worker has a handler for
    concurrency: int = 4  # threads for plain functions, and coroutines at a time
    prefetch: int | None = None  # jobs taken ahead of that; None: as many as are over in a blink, see Pace
    drain: bool = False  # stop when the queues hold nothing to do
    once: bool = False  # stop after one batch
    grace: float = 20.0  # after TERM, running jobs have this long to finish; below the usual 30 s before a KILL
    block: float = 5.0  # an idle worker waits on the bell this long, then looks whether a ring was lost
    rescan: float = 5.0  # a bell can be lost (its waker died): every queue is looked into this often
    beat: float = 2.0  # the longest pause between two heartbeats: also how soon a withdrawn job is known
    sweep: float = 15.0  # pause between two sweeps that find nothing; what is due is the ticker's to notice
    mend: float = 15.0  # pause between two steps of the full check of all jobs; twenty of these between two checks
    tick: float = 5.0  # the longest pause between two looks at what is due: how late it may be when a bell was lost
    helper_limit: float = 600.0  # a helper renews the leases of a worker that hangs for this long; 0: no helper
    job_logs: int = 0  # KiB of what a handler logs and prints that are kept with its job
    backoff: float = 2.0  # the longest pause between two tries while Redis is away
    id: str = field(default_factory=worker_id)

    @property
    def wait_limit(self) -> float:
        """How long to wait on the bell; shorter where the end of all work is waited for too."""
        return min(self.block, 0.2) if self.drain else self.block

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise ValueError(f"concurrency must be 1 to {MAX_CONCURRENCY}, not {self.concurrency}")
        if self.prefetch is not None and not 0 <= self.prefetch <= MAX_PREFETCH:
            raise ValueError(f"prefetch must be 0 to {MAX_PREFETCH}, not {self.prefetch}")
        if not 0 <= self.grace <= MAX_GRACE:
            raise ValueError(f"grace must be 0 to {MAX_GRACE} seconds, not {self.grace:g}")
        if self.helper_limit and not 1 <= self.helper_limit <= MAX_GRACE:
            raise ValueError(f"helper_limit must be 0 or 1 to {MAX_GRACE} seconds, not {self.helper_limit:g}")
        if self.drain and self.once:
            raise ValueError("choose one of drain and once")
