"""Workers: processes that take jobs from queues and run the handlers of installed apps.

Apps write ``from machines.worker import handler`` in their ``handlers.py``. The cast:

- ``registry``, ``discovery``: which function does which job
- ``launcher``: the life of the process; ``line``: its main loop
- ``routes``, ``fetcher``, ``doorbell``: which queues, taking from them, waiting for them
- ``hand``, ``crew``, ``processor``: the jobs held, the threads that run them, one job's run
- ``heartbeat``, ``row``: signs of life
- ``sweeper``, ``ticker``, ``periodic``: taking back what others lost; timers and messages; the loop around both
"""

from machines.worker.job import Job
from machines.worker.registry import HandlerError, handler

__all__ = ["HandlerError", "Job", "handler"]
