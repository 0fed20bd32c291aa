"""The archive: finished instances that Redis no longer holds, each with its data and its history.

- ``store``: the archive of the installation (``SIGNALBOX_ARCHIVE``), what every archive can do, and an archived
  instance as the engine would have answered
- ``sql``: one archived instance as text that any archive can hold; the archive in the database, on PostgreSQL in one
  partition for each month
- ``parquet``: in Parquet files of a folder
"""
