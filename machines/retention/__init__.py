"""Retention: how much is kept of each kind of record, what lets go of the rest, and erasing one person's data.

- ``policy``: the bounds of the installation (``SIGNALBOX_RETAIN``) and of a machine's definition
- ``duty``: the background duty of workers that lets go of finished instances, dead jobs and log entries
- ``tables``: lets go of rows of the database: audit, statistics, webhook deliveries, archive
- ``pacing``: keeps the duty within a share of the server's time
- ``figures``: how much is kept and was archived, for the pages
- ``erasure``: erases an instance, or a value, with ``redis_search``, ``sql_search`` and ``search_values``
"""
