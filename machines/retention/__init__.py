"""Retention: how much is kept of each kind of record, what lets go of the rest, and erasing one person's data.

- ``duty``: the background duty of workers that lets go of finished instances, dead jobs and log entries
- ``tables``: lets go of rows of the database: audit, statistics, webhook deliveries, archive
- ``figures``: how much is kept and was archived, for the pages
- ``erasure``: erases an instance, or a value, that ``search`` finds in Redis and in the database
"""
