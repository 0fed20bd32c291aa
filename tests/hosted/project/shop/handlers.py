"""Handlers of the shop's jobs, found as each app's ``handlers.py`` is."""

from machines.worker import handler


@handler("do_start")
def do_start(job):
    return {}
