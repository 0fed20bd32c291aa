"""The live view: changes in Redis, sent to the browsers that watch them.

The cast, from Redis to the browser:

- ``link``      one subscriber and one reading connection to Redis
- ``agenda``    when a rung partition may be read without losing its last step
- ``hub``       one per process and event loop: waits, reads, reconciles, recovers
- ``board``     the feeds: last value of each watched topic, numbered, and who watches it
- ``outbox``    what one socket has yet to be told: the latest of each topic, never a queue
- ``consumer``  one socket: login, permissions, limits; no business logic
- ``patrol``    takes back what a socket may no longer see

A notification is only ever a hint to read again; every value sent is absolute.
"""
