"""Workers: processes that take jobs from queues and run the handlers of installed apps.

Apps write ``from machines.worker import handler`` in their ``handlers.py``. The cast:

- ``registry``, ``discovery``: which function does which job; ``job``: what it is given
- ``launcher``: the life of the process; ``line``: its main loop; ``supervisor``: several processes as one
- ``routes``, ``fetcher``, ``doorbell``, ``pace``: which queues, taking from them, waiting for them, how far ahead
- ``hand``, ``crew``: the jobs held, and who works: ``threads``, ``coroutines``; ``processor``: one job's run;
  ``deadlines``: how long it may take; ``connections``: what its thread leaves open
- ``completer``, ``board``: telling Redis how jobs ended, and how far they have come
- ``heartbeat``, ``row``, ``tally``: signs of life
- ``ticker``, ``alarm``, ``sweeper``, ``mender``: what is due, waiting for it, what was overlooked, what was damaged;
  ``periodic``: the loop of each
- ``backoff``, ``outage``, ``reclaim``: while Redis is away, and after
"""

from .job import Job, Timeout
from .registry import HandlerError, handler

__all__ = ["HandlerError", "Job", "Timeout", "handler"]
