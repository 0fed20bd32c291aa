"""Workers: processes that take jobs from queues and run the handlers of installed apps.

Apps write ``from machines.worker import handler`` in their ``handlers.py``. The parts:

- ``registry``: the handlers; ``job``: what a handler receives; ``options``
- ``launcher``: the life of the process; ``supervisor``: several processes; ``lease_renewal``: what the process
  tells Redis of itself
- ``intake/``: which queues to serve, taking jobs, waiting for jobs, how many to take ahead
- ``execution/``: running handlers in threads and coroutines, deadlines, progress, reporting finished jobs
- ``duties/``: due work, expired leases, checks of jobs and indexes, and the loop of each duty
- ``reconnect``: while Redis is away, and after
"""

from .job import HandBack, Job, Timeout
from .registry import HandlerError, handler

__all__ = ["HandBack", "HandlerError", "Job", "Timeout", "handler"]
