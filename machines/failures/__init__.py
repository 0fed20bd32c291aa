"""Groups dead jobs by handler, exception and message shape, and keeps counts of each group in SQL.

- ``fingerprint``: the shape of a message and the key of a group; pure functions
- ``dead_jobs``: reads dead jobs in the order of their death
- ``follower``: the background duty that reads what is new, from a position that is kept
- ``recording``: the writes of the follower, each failure once
- ``open_jobs``: which of the counted jobs are still dead
- ``paced_actions``: the background duty that re-drives or skips the jobs of a group at a rate
- ``retention``: removes what is old
"""
