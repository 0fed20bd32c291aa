"""The archive: finished instances that Redis no longer holds, each with its data and its history.

- ``record``: one archived instance, as text that any archive can hold
- ``store``: the archive of the installation (``SIGNALBOX_ARCHIVE``), and what every archive can do
- ``sql``: in the database; on PostgreSQL in one partition for each month
- ``parquet``: in Parquet files of a folder
- ``opening``: opens an archived instance as the engine would have answered
- ``names``: what ``SIGNALBOX_ARCHIVE`` may say
"""
