"""Insight: what the histories of a machine's instances say about it: ways, times, people, changes.

- ``questions``: the questions, each of which takes a ``Search`` and returns a record of ``records``
- ``comparison``: the difference between two searches, and whether it is more than chance
- ``store``: the facts of each step in Parquet files, written and read by DuckDB
- ``places``: where these files are: a folder, or rows of ``models``, of which each host has copies
- ``ingestion``: the background duty of workers that reads histories and adds their facts
- ``discovery``: a draft of a machine from the log of a process that has none, and steps of a log
  that a definition does not have; ``exports``: XES and Parquet
- ``statistics``: figures of an hour, a day, a month, which workers measure once a minute, in SQL
"""
