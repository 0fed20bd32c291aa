"""Groups dead jobs by handler, exception and message shape, and keeps counts of each group in SQL.

- ``dead_jobs``: reads dead jobs in the order of their death, and which of the counted ones are still dead
- ``recording``: the shape of a message, the key of a group, and the writes, each failure once
- ``duties``: background duties of workers: counting what is new, retries and skips at a rate, removing what is old
- ``digest``: what fails, as a mail and a webhook message
"""
