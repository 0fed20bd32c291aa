"""Retention: how much is kept of each kind of record, what lets go of the rest.

- ``policy``: the bounds of the installation (``SIGNALBOX_RETAIN``) and of a machine's definition
- ``duty``: the background duty of workers that lets go of finished instances, dead jobs and log entries
- ``tables``: lets go of rows of the database: audit, statistics, webhook deliveries, archive
- ``pacing``: keeps the duty within a share of the server's time
"""
