"""Ties instances of a machine to rows of a Django model. ``machines.fields`` has the public names.

Redis decides; two columns of the row follow: the state as text, and the revision it belongs to. Each write of a column
is guarded by the revision, so an older one never replaces a newer one, whichever process comes first:

- ``fire``        fires for a row and writes its columns in the same process
- ``following``   brings the columns that a field follows to the instance
- ``outbox``      keeps what a transaction asked for until it has committed; ``delivery`` sends it once
- ``projection``  a worker reads the logs of the machine's partitions and writes what nobody has written
- ``reconcile``   compares all rows with all instances, and mends

``registry`` lists the fields of a project, ``columns`` reads and writes the two columns.
"""
