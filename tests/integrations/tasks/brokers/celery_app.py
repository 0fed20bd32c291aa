"""A Celery app whose worker reports ends."""

from __future__ import annotations

import os

from celery import Celery

from machines.integrations.tasks.celery import report_ends

url = os.environ["REDIS_URL"].replace("unix://", "redis+socket://")
app = Celery("tests", broker=url)
app.conf.broker_transport_options = {"global_keyprefix": f"{os.environ['SIGNALBOX_PREFIX']}celery:"}
app.conf.worker_hijack_root_logger = False
report_ends()


@app.task
def charge(amount):
    if amount < 0:
        raise ValueError("less than nothing")
    return {"paid": amount} if amount else {1}


@app.task(bind=True, max_retries=1, default_retry_delay=0)
def charge_later(self, amount):
    if not self.request.retries:
        raise self.retry()
    return {"paid": amount}
